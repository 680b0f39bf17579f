package juju

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/backupfile"
	"bijou/state/copying"
	"bijou/state/keys"
	"bijou/state/osutil"
	"bijou/state/secret"
	"bijou/state/secret/keyfile"
	"bijou/state/secret/record"
	"bijou/state/unitdir"
)

type restoreCmd struct {
	File    string `arg:"" help:"The backup."`
	State   string `placeholder:"URL" help:"Keep the state at this URL, as for bootstrap; with --replace it stays where it was."`
	Replace bool   `help:"Restore the same model in place of its remains, and end its running agents."`
	Adopt   bool   `help:"Accept units' directories as the backup describes them: a unit waits only if the directory of its storage is gone."`
	Key     string `placeholder:"FILE" help:"Open its secrets with these keys, a secret-keys.yaml; default: those in the backup."`
	Check   bool   `help:"Only check the file, and print its content."`
}

// Run restores the environment and starts its background process.
func (c restoreCmd) Run(o *operator) error {
	if c.Check {
		header, err := copying.CheckBackup(c.File)
		if err != nil {
			return err
		}
		return o.encode("yaml", header)
	}

	return backupfile.OpenFile(c.File, backupfile.Environment, func(a *backupfile.Reader) error {
		err := c.restoreEnvironment(o, a)
		switch {
		case errors.Is(err, state.ErrStoreExists):
			err = console.Hint(err,
				"--state URL names a different place; --replace restores the same model in its place")
		case errors.Is(err, state.ErrRunning):
			err = console.Hint(err, "juju stop ends the agents of this host")
		}

		return err
	})
}

// restoreEnvironment makes an environment of the backup: a new one, or with --replace the same one in
// place.
func (c restoreCmd) restoreEnvironment(o *operator, a *backupfile.Reader) error {
	env, err := copying.BackupEnvironment(a)
	if err != nil {
		return err
	}

	o.name = cmp.Or(o.name, os.Getenv("JUJU_ENV"), env.Name)
	e, err := bootstrapCmd{Provider: env.Provider, State: c.State}.newEnvironment(o)
	if err != nil {
		return err
	}

	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot restore model %q: %w", e.Name, err)
	}
	defer lock.Release()

	r := &restore{o: o, cmd: c, archive: a, env: e}
	switch {
	case lock.Bootstrapped() && !c.Replace:
		done, derr := r.finishInterrupted(e.Dir)
		if done || derr != nil {
			if derr != nil {
				return fmt.Errorf("cannot restore model %q: %w", e.Name, derr)
			}

			return nil
		}

		err = console.Hint(fmt.Errorf("there is one in %s already", e.Dir),
			"-e NAME restores it under a different name; --replace restores it in place, if it is the same")
	case lock.Bootstrapped():
		err = r.replaceInPlace()
	default:
		if c.Replace {
			r.env.UUID = env.UUID
		}
		b := bootstrap{o: o, cmd: bootstrapCmd{config: env.Config}, lock: lock, env: r.env, restore: r}
		err = b.checkProvider()
		if err == nil {
			err = b.run()
		}
		if err != nil && !c.Replace { // or there may be more than was made here
			err = errors.Join(err, b.undo())
		}
	}
	if err != nil {
		return fmt.Errorf("cannot restore model %q: %w", e.Name, err)
	}

	return nil
}

type restore struct {
	o       *operator
	cmd     restoreCmd
	archive *backupfile.Reader
	env     home.Environment
}

// finishInterrupted starts an environment that was made of this backup, if only its start is missing: the
// restoration was cut off.
func (r *restore) finishInterrupted(dir string) (done bool, err error) {
	e, err := home.Load(dir)
	if err != nil {
		return false, err
	}
	_, whole, err := copying.FindRestored(r.o.ctx, e.State, r.archive)
	if err != nil || !whole {
		return false, nil // it is another, whatever it is
	}

	r.o.note("model %q was already restored from this backup completely; starting it",
		e.Name)
	if err := r.o.startBackground(e); err != nil {
		return true, err
	}
	return true, r.o.setCurrent(e.Name)
}

// findWhole returns the uuid of the environment that an interrupted call has made of this backup in the
// same store and under the same name. It is empty if there is none.
func (r *restore) findWhole(e home.Environment) (uuid string, err error) {
	env, whole, err := copying.FindRestored(r.o.ctx, e.State, r.archive)
	if _, replaced := errors.AsType[*state.Replaced](err); replaced && r.cmd.Replace {
		return "", nil // it is set aside
	}
	if err != nil || !whole || env.Name != e.Name {
		return "", err
	}

	next := "using it as it is"
	if r.cmd.Replace {
		next = "making it again"
	}
	r.o.note(
		"  the state in %s is already complete, from an interrupted restoration of this backup; %s",
		e.State, next,
	)

	return env.UUID, nil
}

// replaceInPlace restores the backup over the environment of the same uuid on this host, and starts it.
func (r *restore) replaceInPlace() error {
	now, err := home.Load(r.env.Dir)
	if err != nil {
		return err
	}
	if now.UUID != r.archive.UUID {
		return console.Hint(
			fmt.Errorf("the one in %s is different, with the uuid %s, not %s",
				now.Dir, now.UUID, r.archive.UUID),
			"-e NAME restores it under a different name",
		)
	}

	old := now.State
	if err := r.o.checkStopped(now); err != nil {
		return err
	}
	if r.cmd.State != "" {
		now.State, err = now.KeepCredentials(r.env.State)
		if err != nil {
			return err
		}
	}

	r.env = now
	if err := os.MkdirAll(filepath.Dir(now.StateFile()), 0o700); err != nil {
		return fmt.Errorf("cannot make the state's directory: %w", err)
	}
	if _, err := r.findWhole(now); err != nil {
		return err
	}
	if err := r.restoreStore(now, ""); err != nil {
		return err
	}

	if now.State != old {
		ctx, cancel := context.WithTimeout(r.o.ctx, openTimeout)
		defer cancel()
		if err := copying.MarkStoreMoved(ctx, old, now.UUID, now.State); err != nil {
			r.o.note("warning: cannot mark the old store as moved, so agents that reach it still use it: %v", err)
		}
	}

	if err := now.Save(); err != nil {
		return err
	}
	if err := now.DropCredentials(); err != nil {
		return err
	}

	return r.o.startBackground(now)
}

// restoreStore sets aside the folders of units that the backup does not know, unpacks those that
// are not there, and fills the store. As long as the store is as it was, a failure puts the
// folders back.
func (r *restore) restoreStore(e home.Environment, sha256 string) error {
	var aside asideFolders
	if r.cmd.Replace {
		var err error
		if aside, err = r.setAsideUnknown(e); err != nil {
			return err
		}
	}

	begun := false
	err := r.fillStore(e, sha256, func() { begun = true })
	if err != nil && !begun {
		return errors.Join(err, aside.undo(r.o))
	}
	return err
}

// fillStore restores the backup's files and keys. It calls begun once the store differs from its former
// content.
func (r *restore) fillStore(e home.Environment, sha256 string, begun func()) error {
	if err := r.unpackUnits(e); err != nil {
		return err
	}
	if err := r.takeSecretKeys(e); err != nil {
		return err
	}

	kept, err := r.unpackStorage(e, r.cmd.Replace)
	if err != nil {
		return err
	}

	copied, err := copying.Restore(r.o.ctx, copying.Restoration{
		URL:      e.State,
		Replace:  r.cmd.Replace,
		Adopt:    r.cmd.Adopt,
		Fault:    r.o.parts.Fault,
		Begun:    begun,
		Storage:  kept,
		Progress: r.o.reportSteps,
		SetAside: func(folder string) {
			r.o.note("  the former state was replaced while it was open: its files are now in %s", folder)
		},
		Change: func(env *state.Environment) {
			env.Name = e.Name
			env.UUID = e.UUID
			env.Tools = e.Tools
			if sha256 != "" { // which bootstrap has set
				env.Config[state.ProviderSHA256] = sha256
			}
		},
	}, r.archive)
	if err != nil {
		return err
	}

	if err := r.noteSealed(e); err != nil {
		return err
	}
	if err := r.noteStorage(e); err != nil {
		return err
	}

	r.o.note("  %s of %d bytes from the backup of %s, the same in the store: sha256 %s",
		formatCount(copied.Keys, "key"), copied.Bytes, r.archive.Time.UTC().Format("2006-01-02 15:04:05Z"), copied.SHA256)
	r.noteOutcome()
	return nil
}

// noteOutcome prints what an operator must know about the restored environment.
func (r *restore) noteOutcome() {
	if r.cmd.Replace {
		r.o.note("  no instance is stopped until provisioner-harvest-mode is set again: some may be newer than the backup")
		r.o.note("  units whose directories differ from the backup wait for: juju resolved UNIT")
	} else {
		r.o.note("  it is a different model, with the uuid %s; it owns none of the old one's machines",
			r.env.UUID)
		r.o.note("  units whose directories are not in the backup begin again; machines except 0 wait for: juju resolved MACHINE")
	}
}

// chooseStateURL returns the URL of the store to restore to, and writes the credentials that the URL names into the
// environment's directory. With --replace and without --state it is the backup's own store, with the credentials of
// the backup, unless that store is a file, which may be in a different directory by now.
func (r *restore) chooseStateURL(e home.Environment) (string, error) {
	if !r.cmd.Replace || r.cmd.State != "" || !strings.HasPrefix(r.archive.State, "etcd") {
		return e.KeepCredentials(e.State)
	}

	for _, name := range r.archive.Names(backupfile.CredentialName("")) {
		if name == backupfile.SecretKeysName() {
			continue
		}
		if err := r.writeCredential(e, name); err != nil {
			return "", err
		}
	}

	return e.LocateState(r.archive.State)
}

// writeCredential writes a file of credentials from the archive into the environment's directory.
func (r *restore) writeCredential(e home.Environment, name string) error {
	data, err := r.archive.ReadAll(name, maxCredentialSize)
	if err != nil {
		return err
	}

	path := filepath.Join(e.Dir, name)
	if err := osutil.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}

	return osutil.WriteFile(path, data, 0o600)
}

const maxCredentialSize = 1 << 20 // in bytes

// unpackUnits restores the units' directories, except those that exist. It does not restore the bindings of
// storage: there is no storage, or it is bound for the unit of the former environment.
func (r *restore) unpackUnits(e home.Environment) error {
	for _, name := range r.archive.Names("machines/") {
		if !strings.Contains(name, "/units/") {
			continue
		}

		dir := filepath.Join(e.Dir, strings.TrimSuffix(name, ".tar"))
		if _, err := os.Lstat(dir); err == nil {
			continue
		}
		content, err := r.archive.Open(name)
		if err != nil {
			return err
		}

		err = home.UnpackFolder(content, dir, unitdir.Notes)
		if err := errors.Join(err, content.Close()); err != nil {
			return err
		}
	}

	return nil
}

// unpackStorage restores the content of storage, and returns the ids. With mayBeThere it leaves directories
// with files alone; otherwise such a directory is an error.
func (r *restore) unpackStorage(e home.Environment, mayBeThere bool) (kept []string, err error) {
	for _, k := range r.archive.Keys {
		id, ok := strings.CutPrefix(k.Key, keys.Storages)
		if !ok {
			continue
		}

		var s state.Storage
		if err := json.Unmarshal(k.Value, &s); err != nil {
			return nil, fmt.Errorf("cannot read storage %q: %w", id, err)
		}

		s.ID = id
		name := backupfile.StorageName(s.Machine, id)
		if !r.archive.Has(name) {
			continue
		}

		place := unitdir.StorageOf(e.MachineDir(s.Machine), e.Name, s)
		if _, err := os.Stat(place.Base); place.Base != "" && err != nil {
			r.o.note("warning: the content of storage %s is not restored: the directory %s is missing", id, place.Base)
			continue
		}
		if err := r.unpackOne(name, place.Folder, mayBeThere); err != nil {
			return nil, fmt.Errorf("cannot restore the content of storage %s: %w", id, err)
		}
		kept = append(kept, id)
	}

	if len(kept) > 0 {
		r.o.note("  restored, or already there: the content of storage %s", strings.Join(kept, ", "))
	}
	return kept, nil
}

// unpackOne restores one storage into its directory, which must be missing or empty unless mayBeThere is
// true.
func (r *restore) unpackOne(name, folder string, mayBeThere bool) error {
	if _, err := os.Lstat(folder); err == nil {
		empty, err := osutil.IsEmptyDir(folder)
		if err != nil {
			return err
		}

		if !empty && !mayBeThere {
			return console.Hint(fmt.Errorf("%s has files already", folder),
				"move it away, or remove it if an interrupted restoration left it")
		}
		if !empty {
			return nil
		}
		if err := os.Remove(folder); err != nil {
			return err
		}
	}

	if err := osutil.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	content, err := r.archive.Open(name)
	if err != nil {
		return err
	}

	err = home.UnpackFolder(content, folder)
	return errors.Join(err, content.Close())
}

// asideFolder is the folder of a unit that is newer than the backup, moved to where no agent
// removes it.
type asideFolder struct {
	name string // below the environment's folder
	own  string // where the folder was
	kept string // where it is
	link string // led to it; empty: it was no link
	to   string // what link was
}

type asideFolders []asideFolder

// undo puts the folders back: their units go on if the store was not replaced.
func (all asideFolders) undo(o *operator) error {
	var errs []error
	for _, a := range all {
		if err := a.undo(); err != nil {
			errs = append(errs, err)
			continue
		}
		o.note("  nothing was restored: the directory %s is back in its place", a.name)
	}

	return errors.Join(errs...)
}

// undo moves a unit's directory back to its place, and makes the symlink to it again.
func (a asideFolder) undo() error {
	if err := os.Rename(a.kept, a.own); err != nil {
		return fmt.Errorf("cannot put back the unit's directory %s: %w", a.kept, err)
	}
	if a.link == "" {
		return nil
	}
	if err := os.Symlink(a.to, a.link); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}

	return nil
}

// setAsideUnknown moves away the directories of units that are newer than the backup, since agents remove
// directories of unknown units. If it fails for one, it moves the others back.
func (r *restore) setAsideUnknown(e home.Environment) (asideFolders, error) {
	known := map[string]bool{}
	for _, k := range r.archive.Keys {
		if machine, unit, ok := strings.Cut(k.Key, "/units/"); ok {
			known[machine+"/units/"+strings.ReplaceAll(unit, "/", "-")] = true
		}
	}

	dirs, err := e.MachineDirs()
	if err != nil {
		return nil, err
	}
	var all asideFolders

	for _, dir := range dirs {
		found, _ := filepath.Glob(filepath.Join(dir, "units", "*")) // fails for a bad pattern only

		for _, folder := range found {
			name, err := filepath.Rel(e.Dir, folder)
			if err != nil {
				return nil, errors.Join(err, all.undo(r.o))
			}
			if known[name] {
				continue
			}

			aside := freeName(fmt.Sprintf("%s/set-aside/%s-%s", dir, filepath.Base(folder), r.archive.Sum[:8]))
			one, err := setAside(name, folder, aside)
			if err != nil {
				err = console.Hint(fmt.Errorf("cannot set the unit's directory %s aside: %w", folder, err),
					"nothing was restored: make room for it there, or move it away, and restore again")
				return nil, errors.Join(err, all.undo(r.o))
			}

			if one.own == "" {
				continue
			}

			r.o.note("  the backup has no unit for the directory %s, which is now %s", name, aside)
			all = append(all, one)
		}
	}

	return all, nil
}

// freeName returns the path, with a number if something is there: this backup was restored before.
func freeName(path string) string {
	free := path
	for n := 2; ; n++ {
		if _, err := os.Lstat(free); err != nil {
			return free
		}
		free = fmt.Sprintf("%s-%d", path, n)
	}
}

// setAside moves a unit's directory to aside, and removes a symlink that leads to it. It returns no
// directory for a dangling symlink, since the directory was set aside before.
func setAside(name, folder, aside string) (asideFolder, error) {
	own, err := filepath.EvalSymlinks(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return asideFolder{}, os.Remove(folder)
	}
	if err != nil {
		return asideFolder{}, err
	}

	one := asideFolder{name: name, own: own, kept: aside}
	if to, err := os.Readlink(folder); err == nil {
		one.link = folder
		one.to = to
	}

	if err := osutil.MkdirAll(filepath.Dir(aside), 0o755); err != nil {
		return asideFolder{}, err
	}
	if err := os.Rename(own, aside); err != nil {
		return asideFolder{}, err
	}
	if err := osutil.SyncDir(filepath.Dir(aside)); err != nil {
		return asideFolder{}, errors.Join(err, one.undo())
	}
	if one.link == "" {
		return one, nil
	}
	if err := os.Remove(one.link); err != nil {
		return asideFolder{}, errors.Join(err, one.undo())
	}

	return one, nil
}

// takeSecretKeys puts the keys of the backup, and those of --key, before the environment's
// own, which are newer; there is always one that seals.
func (r *restore) takeSecretKeys(e home.Environment) error {
	var ring secret.Keyring
	if name := backupfile.SecretKeysName(); r.archive.Has(name) {
		data, err := r.archive.ReadAll(name, maxCredentialSize)
		if err != nil {
			return err
		}

		ring, err = keyfile.Parse(data)
		if err != nil {
			return err
		}
	}

	if r.cmd.Key != "" {
		given, err := keyfile.File(r.cmd.Key).Read()
		if err != nil {
			return fmt.Errorf("cannot take the keys of %q: %w", r.cmd.Key, err)
		}
		ring = append(ring, given...)
	}

	own, err := e.SecretKeys().Read()
	if err != nil && !errors.Is(err, secret.ErrNoKey) {
		return err
	}

	ring = append(ring, own...)
	if len(ring) == 0 {
		ring = secret.Keyring{secret.NewKey()}
	}
	return e.SecretKeys().Write(ring)
}

// noteStorage notes how storage continues whose content is not restored.
func (r *restore) noteStorage(e home.Environment) error {
	return r.o.openUnchecked(e, func(s *state.State) error {
		all, err := state.Read(r.o.ctx, s, (*state.View).Storages)
		if err != nil {
			return err
		}

		var renewed []string
		for _, one := range all {
			if one.Unit != "" && !one.Made {
				renewed = append(renewed, one.ID)
			}
		}

		if r.cmd.Replace && len(all) > 0 {
			r.o.note("  units whose storage is missing also wait: juju resolved UNIT makes it again, empty")
		}
		if !r.cmd.Replace && len(renewed) > 0 {
			r.o.note("  made again, empty: storage %s", strings.Join(renewed, ", "))
		}
		return nil
	})
}

// noteSealed prints the secrets that cannot be opened with the keys that this host has.
func (r *restore) noteSealed(e home.Environment) error {
	ring, err := e.SecretKeys().Read()
	if err != nil {
		return err
	}

	return r.o.openUnchecked(e, func(s *state.State) error {
		sealed, err := state.Read(r.o.ctx, s, func(v *state.View) (sealed []string, err error) {
			all, err := record.All(v)
			if err != nil {
				return nil, err
			}

			for _, one := range all {
				_, err := record.Open(v, ring, one, one.Latest)
				switch {
				case errors.Is(err, secret.ErrNoKey):
					sealed = append(sealed, fmt.Sprintf("%s of %s", one.ID, one.Owner))
				case errors.Is(err, state.ErrNotFound): // that revision was removed
				case err != nil:
					return nil, err
				}
			}

			return sealed, nil
		})

		if err != nil || len(sealed) == 0 {
			return err
		}

		r.o.note("warning: nothing here opens these secrets: %s", strings.Join(sealed, ", "))
		r.o.note("hint: restore with --key FILE, the %s of a host of the model that was backed up",
			keyfile.FileName)
		return nil
	})
}
