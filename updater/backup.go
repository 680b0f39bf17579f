package updater

import (
	"context"
	"errors"
	"io"

	"bijou/state"
	"bijou/state/archive"
)

// keyBackup leaves behind who lives, who leads, and whose turn it is.
func keyBackup() state.KeyBackup {
	return state.KeyBackup{
		FormatKey: Keys().Format(), Format: format,
		Leave:   []string{Keys().Presences(), "leader/"},
		Running: []string{Keys().Presences(), Keys().UpdaterLeader()},
	}
}

// Backup writes the updater's keys, by a neco of that version.
func Backup(ctx context.Context, space *state.Keyspace, to io.Writer, version string) (archive.Header, error) {
	w := archive.NewWriter(to)
	h, err := space.Backup(ctx, keyBackup(), w)
	if err != nil {
		return h, err
	}
	h.Bijou = version
	h.Has = []string{"boot servers, configuration, the update that runs or ran last, history, alerts not sent yet"}
	h.Lacks = []string{"which workers live, who leads, whose turn it is", "what is installed on boot servers"}
	return h, w.Close(h)
}

// Restore makes the updater's keys at the URL those of the backup, and the store if
// there is none; with replace in place of others. state.ErrStoreExists: there are others.
// state.ErrRunning: daemons are at work there.
func Restore(ctx context.Context, url string, a *archive.Reader, replace bool) (err error) {
	space, err := state.CreateKeyspace(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, space.Close()) }()
	return space.Restore(ctx, keyBackup(), a, replace)
}
