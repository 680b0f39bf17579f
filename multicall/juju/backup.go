package juju

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/backupfile"
	"bijou/state/charm"
	"bijou/state/copying"
	"bijou/state/unitdir"
)

type backupCmd struct {
	File            string        `arg:"" help:"The file to write, readable only by you; - is stdout."`
	WithCredentials bool          `help:"Include the files that the state's URL names, keys and passwords, and the keys that open secrets."`
	WithUnits       bool          `help:"Include the units' directories on this host."`
	WithStorage     bool          `help:"Include the content of storage on this host. While a unit's storage is copied, its agent starts no hook; programs that the charm has started go on writing."`
	Timeout         time.Duration `default:"10m" placeholder:"DURATION" help:"Wait at most this long for a unit's hook to end, with --with-storage (30s, 10m). 0 waits forever. Default 10m."`
	Force           bool          `help:"Replace an existing file."`
}

// maxBackupAttempts limits the attempts at a backup. An attempt fails if data that it reads is removed or moved
// in the meantime.
const maxBackupAttempts = 5

// Run writes the backup, and prints what it contains and what it leaves out. If data that Run reads is removed or
// moved in the meantime, it starts again. It makes at most maxBackupAttempts attempts, and only one if it writes to
// stdout.
func (c backupCmd) Run(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}

	b := &backup{o: o, cmd: c, env: e}
	err = o.openState(e, func(s *state.State) error {
		if c.File == "-" {
			return b.writeBackup(s, o.streams.Out)
		}

		var err error
		for range maxBackupAttempts {
			err = backupfile.WriteFile(c.File, c.Force, func(w io.Writer) error { return b.writeBackup(s, w) })
			hasMissedData := errors.Is(err, state.ErrNotFound) || errors.Is(err, errStorageMoved)
			if !hasMissedData {
				break
			}
		}

		return err
	})
	if errors.Is(err, os.ErrExist) {
		err = console.Hint(err, "to replace the file: --force")
	}
	if err != nil {
		return fmt.Errorf("cannot back up model %q: %w", e.Name, err)
	}

	b.noteOutcome()
	return nil
}

// backup is the backup of an environment while it is written.
type backup struct {
	o      *operator
	cmd    backupCmd
	env    home.Environment
	header backupfile.Header // describes the backup that the current attempt writes
}

// writeBackup writes an archive with the state and, as far as the flags select them, credentials, secrets' keys,
// storage and units' directories. Each attempt starts a new header in b.header.
func (b *backup) writeBackup(s *state.State, to io.Writer) error {
	// Backup writes the state's keys and blobs, and returns a header for this function to complete.
	w := backupfile.NewWriter(to)
	h, err := copying.Backup(b.o.ctx, s, w)
	if err != nil {
		return err
	}

	h.Bijou = b.o.parts.Version
	h.Has = []string{"all keys of the state", "charms, resources and large settings"}
	h.Lacks = []string{
		"everything that hooks have created outside of units' directories (packages, databases, files of hosts)",
		"the provider's own files and keys",
	}
	b.header = h

	if err := b.addCredentials(w); err != nil {
		return err
	}
	if err := b.addSecretKeys(w); err != nil {
		return err
	}
	if err := b.addStorage(s, w); err != nil {
		return err
	}
	if err := b.addUnits(s, w); err != nil {
		return err
	}

	return w.Close(b.header)
}

// addCredentials records the state's URL in the header. With --with-credentials, it adds the files that the URL
// names, such as a client key. Otherwise the header records that they are missing, if the URL names any.
func (b *backup) addCredentials(w *backupfile.Writer) (err error) {
	var files []string
	b.header.State, files, err = b.env.PortableState()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return nil
	}
	if !b.cmd.WithCredentials {
		b.header.Lacks = append(b.header.Lacks,
			"credentials of the state's URL (--with-credentials includes them)")
		return nil
	}
	b.header.Has = append(b.header.Has, "credentials of the state's URL")

	for _, name := range files {
		err := w.Add(backupfile.CredentialName(filepath.Base(name)), func(to io.Writer) error {
			data, err := os.ReadFile(filepath.Join(b.env.Dir, name))
			if err != nil {
				return err
			}

			_, err = to.Write(data)
			return err
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// addSecretKeys adds the keys that open the secrets, if --with-credentials is given. Otherwise the header
// records that they are missing. It does nothing if the environment has no keys. The secrets themselves are
// sealed, in the backup as in the store.
func (b *backup) addSecretKeys(w *backupfile.Writer) error {
	data, err := os.ReadFile(string(b.env.SecretKeys()))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !b.cmd.WithCredentials {
		b.header.Lacks = append(b.header.Lacks,
			"the keys that open secrets (--with-credentials includes them)")
		return nil
	}

	b.header.Has = append(b.header.Has, "the keys that open secrets")
	return w.Add(backupfile.SecretKeysName(), func(to io.Writer) error {
		_, err := to.Write(data)
		return err
	})
}

// addStorage adds the content of this host's storage, if --with-storage is given. The header records which
// storage the backup contains, and which storage it leaves out.
func (b *backup) addStorage(s *state.State, w *backupfile.Writer) error {
	if !b.cmd.WithStorage {
		b.header.Lacks = append(b.header.Lacks,
			"the content of storage (--with-storage includes storage on this host)")
		return nil
	}

	storages, err := state.Read(b.o.ctx, s, (*state.View).Storages)
	if err != nil {
		return err
	}
	slices.SortStableFunc(storages, func(x, y state.Storage) int { return charm.CompareUnits(x.Unit, y.Unit) })

	// Each step adds all storages of one unit, or of none, so that the unit's hooks have to wait only once. Since the
	// storages are sorted by unit, these are the first n of the remaining ones.
	var packed []string
	for remaining := storages; len(remaining) > 0; {
		n := 1
		for n < len(remaining) && remaining[n].Unit == remaining[0].Unit {
			n++
		}

		b.o.reportSteps(state.Steps{
			What:  "storages backed up",
			Done:  len(storages) - len(remaining) + n,
			Total: len(storages),
		})

		ids, err := b.addUnitStorage(s, w, remaining[:n])
		if err != nil {
			return err
		}

		packed = append(packed, ids...)
		remaining = remaining[n:]
	}

	if len(packed) > 0 {
		slices.SortFunc(packed, charm.CompareUnits)
		b.header.Has = append(b.header.Has, "the content of storage "+strings.Join(packed, ", "))
	}

	return nil
}

// errStorageMoved makes Run start the backup again, since hooks may have run while a storage was copied.
var errStorageMoved = errors.New("storage moved to a different unit while it was copied")

// addUnitStorage adds the contents of storages that all belong to the same unit, or to no unit. It returns
// the ids of the storage that it added, and records in the backup's header why it leaves out other storage.
// It holds back the unit's hooks during the copy. It returns an error that wraps errStorageMoved if, in the
// meantime, a storage was removed or moved to a different unit, or hooks of the unit may have run.
func (b *backup) addUnitStorage(
	s *state.State,
	w *backupfile.Writer,
	storages []state.Storage,
) (packed []string, err error) {
	folders := b.findStorageFolders(storages)
	if len(folders) == 0 {
		return nil, nil
	}

	// All storages have the same unit, so the first one stands for all of them.
	quiesced, err := b.quiesce(storages[0])
	if err != nil {
		return nil, err
	}
	defer quiesced.Close()

	for _, storage := range storages {
		folder, ok := folders[storage.ID]
		if !ok {
			continue
		}
		if err := b.packStorage(w, storage, folder); err != nil {
			return nil, err
		}
		packed = append(packed, storage.ID)
	}

	if err := b.checkNotMoved(s, storages); err != nil {
		return nil, err
	}
	// A new agent may have started hooks during the copy.
	if !quiesced.Holds() {
		return nil, fmt.Errorf("an agent started unit %s while its storage was being copied: %w",
			storages[0].Unit, errStorageMoved)
	}

	return packed, nil
}

// findStorageFolders returns the directories of the storages, by id. It leaves out storages whose content
// cannot be backed up, and records them in the backup's header with the reason.
func (b *backup) findStorageFolders(storages []state.Storage) map[string]string {
	folders := map[string]string{}
	for _, storage := range storages {
		folder, reason := b.storageFolder(storage)
		if reason != "" {
			b.header.Lacks = append(b.header.Lacks, fmt.Sprintf("the content of storage %s: %s", storage.ID, reason))
			continue
		}
		folders[storage.ID] = folder
	}

	return folders
}

// checkNotMoved reads the storages again. It returns an error that wraps errStorageMoved if one of them is gone, or
// belongs to a different unit now. A unit may also have attached a storage that belonged to no unit.
func (b *backup) checkNotMoved(s *state.State, storages []state.Storage) error {
	now, err := state.Read(b.o.ctx, s, (*state.View).Storages)
	if err != nil {
		return err
	}

	for _, storage := range storages {
		i := slices.IndexFunc(now, func(current state.Storage) bool { return current.ID == storage.ID })
		if i < 0 || now[i].Unit != storage.Unit {
			return fmt.Errorf("%w: %s", errStorageMoved, storage.ID)
		}
	}

	return nil
}

// nobody is the [Quiesced] of storage that belongs to no unit.
type nobody struct{}

// Holds returns true, since no unit's hook can use the storage.
func (nobody) Holds() bool { return true }

// Close does nothing.
func (nobody) Close() error { return nil }

// quiesce waits until no hook of the storage's unit is running. New hooks of the unit's present agent can begin
// only after the caller has closed the result. It returns an error if the running hook takes longer than
// --timeout, unless that is 0. It waits for nothing if the storage belongs to no unit.
func (b *backup) quiesce(s state.Storage) (Quiesced, error) {
	if s.Unit == "" {
		return nobody{}, nil
	}

	ctx := b.o.ctx
	if b.cmd.Timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, b.cmd.Timeout)
		defer cancel()
		ctx = limited
	}

	quiesced, err := b.o.parts.Hooks.Quiesce(ctx, b.env.MachineDir(s.Machine), s.Unit, func() {
		b.o.note("waiting for the hook of unit %s to end", s.Unit)
	})

	switch {
	case err == nil:
		return quiesced, nil
	case errors.Is(err, context.DeadlineExceeded) && b.o.ctx.Err() == nil:
		// The limit of --timeout has ended the wait, and not the end of the whole command.
		err = console.Hint(fmt.Errorf("a hook is still running after %s", b.cmd.Timeout),
			"--timeout DURATION waits longer", "juju show-unit "+s.Unit+" shows the hook")
	case errors.Is(err, ErrCannotQuiesce):
		err = console.Hint(err, "to run the agents of this host with this binary: juju stop; juju start")
	}

	return nil, fmt.Errorf("cannot copy the storage of unit %s: %w", s.Unit, err)
}

// packStorage adds the content of a storage's directory. It prints a warning if files changed during the
// copy.
func (b *backup) packStorage(w *backupfile.Writer, s state.Storage, folder string) error {
	return w.Add(backupfile.StorageName(s.Machine, s.ID), func(to io.Writer) error {
		changed, err := home.PackFolder(to, folder)
		if err != nil {
			return err
		}

		if len(changed) > 0 {
			b.o.note("warning: %s of storage %s changed while the backup read them, such as %s",
				formatCount(len(changed), "file"), s.ID, changed[0])
		}

		return nil
	})
}

// storageFolder returns the directory of a storage on this host, or the reason why the backup leaves it
// out.
func (b *backup) storageFolder(s state.Storage) (folder, reason string) {
	switch {
	case s.Pool == charm.PoolTmpFS:
		return "", "it is in memory"
	case s.Machine != "0" && b.env.Provider != state.ProviderLocal:
		// With the provider local, all machines have their directories below the environment's. With any other, only
		// machine 0 is sure to.
		where := ", not on this host"
		if b.env.Provider == state.ProviderNspawn {
			where = ", which is a container"
		}
		return "", "it is on machine " + s.Machine + where
	case !s.Made:
		return "", "it does not exist yet"
	}

	folder = unitdir.StorageOf(b.env.MachineDir(s.Machine), b.env.Name, s).Folder
	info, err := os.Stat(folder)
	switch {
	case err == nil && info.IsDir():
		return folder, ""
	case err == nil || errors.Is(err, fs.ErrNotExist): // without an error, it is not a directory
		return "", "its directory " + folder + " does not exist"
	}
	return "", "its directory cannot be read: " + err.Error()
}

// addUnits adds the directories of this host's units, if --with-units is given. The header records how many
// directories the backup contains, and how many it leaves out. addUnits prints a warning if files changed
// during the copy.
func (b *backup) addUnits(s *state.State, w *backupfile.Writer) error {
	if !b.cmd.WithUnits {
		b.header.Lacks = append(b.header.Lacks, "units' directories (--with-units includes those of this host)")
		return nil
	}
	units, err := state.Read(b.o.ctx, s, func(v *state.View) ([]state.Unit, error) { return v.Units("") })
	if err != nil {
		return err
	}

	packed := 0
	var changed []string // files that changed while they were read
	for i, u := range units {
		b.o.reportSteps(state.Steps{What: "directories of units backed up", Done: i + 1, Total: len(units)})
		// The backup names a directory by the path that older binaries use, so that they can restore it too.
		dir := string(unitdir.Of(b.env.MachineDir(u.Machine), u.Name).Legacy())
		folder, err := filepath.EvalSymlinks(dir)
		if errors.Is(err, fs.ErrNotExist) {
			// The unit is not on this host, or has no directory yet.
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot back up the directory of unit %q: %w", u.Name, err)
		}
		packed++

		err = w.Add(backupfile.FolderName(u.Machine, filepath.Base(dir)), func(to io.Writer) error {
			changedHere, err := home.PackFolder(to, folder)
			changed = append(changed, changedHere...)
			return err
		})
		if err != nil {
			return err
		}
	}

	b.header.Has = append(b.header.Has, "the directories of "+formatCount(packed, "unit"))
	if left := len(units) - packed; left > 0 {
		b.header.Lacks = append(b.header.Lacks,
			"the directories of "+formatCount(left, "unit")+" that are not on this host")
	}

	if len(changed) > 0 {
		b.o.note("warning: %s changed while the backup read them, such as %s",
			formatCount(len(changed), "file"), changed[0])
	}

	return nil
}

// noteOutcome prints what the backup contains, and what it leaves out.
func (b *backup) noteOutcome() {
	h := b.header
	b.o.note("model %q is backed up to %s, as of revision %d: %s, %s",
		b.env.Name, b.cmd.File, h.Revision, formatCount(h.Keys, "key"), formatCount(h.Blobs, "blob"))
	b.o.note("  included: %s", strings.Join(h.Has, "; "))
	b.o.note("  not included: %s", strings.Join(h.Lacks, "; "))
}
