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
	State   string `placeholder:"URL" help:"Keep the state at this URL, as for bootstrap. With --replace, the default is the URL of the model."`
	Replace bool   `help:"Replace the remains of the same model, and end its running agents."`
	Adopt   bool   `help:"Assume that the units' directories are as in the backup: a unit waits only if the directory of its storage is missing."`
	Key     string `placeholder:"FILE" help:"Open its secrets with these keys, a secret-keys.yaml; default: those in the backup."`
	Check   bool   `help:"Only check the file, and print its content."`
}

// Run restores the environment and starts its background process. With --check it only checks the backup, and
// prints the header of the file.
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
				"to keep the state elsewhere: --state URL; to restore the same model in place: --replace")
		case errors.Is(err, state.ErrRunning):
			err = console.Hint(err, "to end the agents of this host: juju stop")
		}

		return err
	})
}

// restoreEnvironment creates a new environment from the backup, and starts it. With --replace, it restores the
// backup over the same environment, if that environment exists. Without --replace, it only starts an existing
// environment that an interrupted call has completely restored from this backup.
func (c restoreCmd) restoreEnvironment(o *operator, a *backupfile.Reader) error {
	backedUp, err := copying.BackupEnvironment(a)
	if err != nil {
		return err
	}

	o.name = cmp.Or(o.name, os.Getenv("JUJU_ENV"), backedUp.Name)
	// newEnvironment only returns a record: nothing is created yet.
	e, err := bootstrapCmd{Provider: backedUp.Provider, State: c.State}.newEnvironment(o)
	if err != nil {
		return err
	}

	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot restore model %q: %w", e.Name, err)
	}
	defer lock.Release()

	r := &restore{o: o, cmd: c, archive: a, env: e}
	if err := r.run(lock, backedUp); err != nil {
		return fmt.Errorf("cannot restore model %q: %w", e.Name, err)
	}

	return nil
}

// restore is one restoration of a backup.
type restore struct {
	o       *operator
	cmd     restoreCmd
	archive *backupfile.Reader
	env     home.Environment // the environment to restore to, not the one in the backup
}

// run restores the backup under the lock of the environment's directory. backedUp is the environment in the backup.
func (r *restore) run(lock *home.FolderLock, backedUp state.Environment) error {
	if lock.Bootstrapped() && r.cmd.Replace {
		return r.replaceInPlace()
	}
	if lock.Bootstrapped() {
		// An interrupted call may have restored this backup.
		done, err := r.finishInterrupted(r.env.Dir)
		if err != nil {
			return err
		}
		if done {
			return nil
		}
		return console.Hint(fmt.Errorf("%s already contains a model", r.env.Dir),
			"to restore the backup under a different name: -e NAME; to restore the same model in place: --replace")
	}

	if r.cmd.Replace {
		// The directory is lost, but the new environment replaces the former one, and keeps its uuid.
		r.env.UUID = backedUp.UUID
	}

	b := bootstrap{o: r.o, cmd: bootstrapCmd{config: backedUp.Config}, lock: lock, env: r.env, restore: r}
	err := r.create(&b)
	if err != nil && !r.cmd.Replace {
		// With --replace, the directory may have files that this call has not created.
		return errors.Join(err, b.undo())
	}
	return err
}

// create inspects the provider, and then creates the environment from the backup.
func (r *restore) create(b *bootstrap) error {
	if err := b.inspectProvider(); err != nil {
		return err
	}
	return b.run()
}

// finishInterrupted starts an environment that an interrupted call has completely restored from this backup, and
// makes it the current one. done is false if dir has no such environment, or if its store cannot be read.
func (r *restore) finishInterrupted(dir string) (done bool, err error) {
	e, err := home.Load(dir)
	if err != nil {
		return false, err
	}
	_, isComplete, err := copying.FindRestored(r.o.ctx, e.State, r.archive)
	if err != nil || !isComplete {
		// This is a different environment, machine 0's agent has already run, or the store cannot be read.
		return false, nil
	}

	r.o.note("model %q has already been restored completely from this backup; starting it",
		e.Name)
	if err := r.o.startBackground(e); err != nil {
		return true, err
	}
	return true, r.o.setCurrent(e.Name)
}

// findWhole returns the uuid of the environment that an interrupted call has completely restored from this
// backup, in the same store and under the same name, and prints a note about it. It returns "" if there is no such
// environment. With --replace, callers restore the backup in either case.
func (r *restore) findWhole(e home.Environment) (uuid string, err error) {
	env, isComplete, err := copying.FindRestored(r.o.ctx, e.State, r.archive)
	if _, replaced := errors.AsType[*state.Replaced](err); replaced && r.cmd.Replace {
		// The store was replaced while a process had it open. The restoration sets the store's files aside later.
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !isComplete || env.Name != e.Name {
		return "", nil
	}

	nextStep := "using it as it is"
	if r.cmd.Replace {
		nextStep = "creating it again"
	}
	r.o.note(
		"  the state in %s is already complete, from an interrupted restoration of this backup; %s",
		e.State, nextStep,
	)

	return env.UUID, nil
}

// replaceInPlace restores the backup over the environment of the same uuid on this host, and starts it. With
// --state, it moves the environment to that store. It returns an error if the environment in the directory has a
// different uuid, or if one of its agents runs on this host.
func (r *restore) replaceInPlace() error {
	e, err := home.Load(r.env.Dir)
	if err != nil {
		return err
	}
	if e.UUID != r.archive.UUID {
		return console.Hint(
			fmt.Errorf("the model in %s is a different one, with the uuid %s, not %s",
				e.Dir, e.UUID, r.archive.UUID),
			"to restore the backup under a different name: -e NAME",
		)
	}
	if err := r.o.checkStopped(e); err != nil {
		return err
	}

	oldStateURL := e.State
	if r.cmd.State != "" {
		// The environment's directory gets copies of the credentials that the new URL names.
		e.State, err = e.KeepCredentials(r.env.State)
		if err != nil {
			return err
		}
	}

	r.env = e
	// The directory of the default store may have been lost.
	if err := os.MkdirAll(filepath.Dir(e.StateFile()), 0o700); err != nil {
		return fmt.Errorf("cannot create the state's directory: %w", err)
	}
	// The result does not matter here, since the backup is restored in either case. findWhole only prints a
	// note, or returns an error if the store cannot be read.
	if _, err := r.findWhole(e); err != nil {
		return err
	}
	// The environment keeps the backup's checksum of the provider's executable.
	const providerSHA256 = ""
	if err := r.restoreStore(e, providerSHA256); err != nil {
		return err
	}

	if e.State != oldStateURL {
		r.markMoved(oldStateURL, e)
	}

	if err := e.Save(); err != nil {
		return err
	}
	// The old URL may name copies of credentials that e.State does not name.
	if err := e.DropCredentials(); err != nil {
		return err
	}

	return r.o.startBackground(e)
}

// markMoved marks the environment's old store as moved to e's store, so that agents stop using the old store.
// If it fails, it prints a warning.
func (r *restore) markMoved(oldStateURL string, e home.Environment) {
	ctx, cancel := context.WithTimeout(r.o.ctx, openTimeout)
	defer cancel()
	if err := copying.MarkStoreMoved(ctx, oldStateURL, e.UUID, e.State); err != nil {
		r.o.note("warning: cannot mark the old store as moved, so agents that reach it still use it: %v", err)
	}
}

// restoreStore restores the backup's keys into the store, and the backup's files. With --replace, it first sets
// aside the directories of units that are not in the backup. It moves them back if it fails before the store has
// changed. providerSHA256 is the checksum of the provider's executable, or "" to keep the backup's checksum.
func (r *restore) restoreStore(e home.Environment, providerSHA256 string) error {
	var aside asideFolders
	if r.cmd.Replace {
		var err error
		aside, err = r.setAsideUnknown(e)
		if err != nil {
			return err
		}
	}

	begun := false
	err := r.fillStore(e, providerSHA256, func() { begun = true })
	if err != nil && !begun {
		return errors.Join(err, aside.undo(r.o))
	}
	return err
}

// fillStore restores the backup's files and keys, and prints notes about the result. It calls begun when it begins to
// change the store, after it has written the files. If providerSHA256 is not empty, the environment records it as the
// sum of the provider's executable.
func (r *restore) fillStore(e home.Environment, providerSHA256 string, begun func()) error {
	if err := r.unpackUnits(e); err != nil {
		return err
	}
	if err := r.takeSecretKeys(e); err != nil {
		return err
	}

	// These storages have their content on this host.
	storageInPlace, err := r.unpackStorage(e, r.cmd.Replace)
	if err != nil {
		return err
	}

	copied, err := copying.Restore(r.o.ctx, copying.Restoration{
		URL:      e.State,
		Replace:  r.cmd.Replace,
		Adopt:    r.cmd.Adopt,
		Fault:    r.o.parts.Fault,
		Begun:    begun,
		Storage:  storageInPlace,
		Progress: r.o.reportSteps,
		SetAside: func(folder string) {
			r.o.note("  the former state was replaced while it was open: its files are now in %s", folder)
		},
		// The environment in the store gets the identity of e, and what is installed here.
		Change: func(env *state.Environment) {
			env.Name = e.Name
			env.UUID = e.UUID
			env.Tools = e.Tools
			if providerSHA256 != "" {
				env.Config[state.ProviderSHA256] = providerSHA256
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

// noteOutcome prints notes about the restored environment that an operator must know.
func (r *restore) noteOutcome() {
	if r.cmd.Replace {
		r.o.note("  no instance is stopped until provisioner-harvest-mode is set again, since instances may be newer than the backup")
		r.o.note("  units whose directories differ from the backup wait for: juju resolved UNIT")
	} else {
		r.o.note("  this is a new model, with the uuid %s; it owns no machine of the old model",
			r.env.UUID)
		r.o.note("  units whose directories are not in the backup begin again; all machines except 0 wait for: juju resolved MACHINE")
	}
}

// chooseStateURL returns the URL of the store to restore to, and writes the credentials that the URL names
// into the environment's directory. With --replace and without --state, this is the store from which the backup
// was made, if that store is in etcd, since a store in a file may be in a different directory by now.
// chooseStateURL then writes all credentials of the backup except the keys of secrets. In all other cases, it
// returns the URL of e's own store.
func (r *restore) chooseStateURL(e home.Environment) (string, error) {
	isBackupsStore := r.cmd.Replace && r.cmd.State == "" && strings.HasPrefix(r.archive.State, "etcd")
	if !isBackupsStore {
		return e.KeepCredentials(e.State)
	}

	// CredentialName("") is the prefix of the names of all credentials.
	for _, name := range r.archive.Names(backupfile.CredentialName("")) {
		if name == backupfile.SecretKeysName() {
			// takeSecretKeys restores the keys of secrets.
			continue
		}
		if err := r.writeCredential(e, name); err != nil {
			return "", err
		}
	}

	// LocateState makes relative paths in the backup's URL absolute.
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

// unpackUnits restores the units' directories, except those that exist. It does not restore the notes about
// bound storage, since the storage is missing, or is bound for a unit of the former environment.
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

// unpackStorage restores the content of storage, and returns the ids of the storage whose content is then in
// place. It skips storage whose content is not in the backup, and, with a warning, storage in an operator's
// directory that is missing. If a storage's directory already has files, unpackStorage keeps them if mayHaveFiles
// is true, and otherwise returns an error.
func (r *restore) unpackStorage(e home.Environment, mayHaveFiles bool) (inPlace []string, err error) {
	for _, k := range r.archive.Keys {
		id, isStorage := strings.CutPrefix(k.Key, keys.Storages)
		if !isStorage {
			continue
		}

		var s state.Storage
		if err := json.Unmarshal(k.Value, &s); err != nil {
			return nil, fmt.Errorf("cannot read storage %q: %w", id, err)
		}
		s.ID = id

		name := backupfile.StorageName(s.Machine, id)
		// The backup may lack the content of a storage.
		if !r.archive.Has(name) {
			continue
		}

		place := unitdir.StorageOf(e.MachineDir(s.Machine), e.Name, s)
		if place.Base != "" {
			// The operator's directory, often a mount point. bijou does not create it.
			if _, err := os.Stat(place.Base); err != nil {
				r.o.note("warning: the content of storage %s is not restored: the directory %s is missing", id, place.Base)
				continue
			}
		}
		if err := r.unpackOne(name, place.Folder, mayHaveFiles); err != nil {
			return nil, fmt.Errorf("cannot restore the content of storage %s: %w", id, err)
		}
		inPlace = append(inPlace, id)
	}

	if len(inPlace) > 0 {
		r.o.note("  restored, or already in place: the content of storage %s", strings.Join(inPlace, ", "))
	}
	return inPlace, nil
}

// unpackOne restores the content of one storage into the directory folder. name is the name of the content's file
// in the archive. If the directory has files, unpackOne keeps them and restores nothing if mayHaveFiles is true, and
// otherwise returns an error.
func (r *restore) unpackOne(name, folder string, mayHaveFiles bool) error {
	if _, err := os.Lstat(folder); err == nil {
		empty, err := osutil.IsEmptyDir(folder)
		if err != nil {
			return err
		}

		if !empty && !mayHaveFiles {
			return console.Hint(fmt.Errorf("%s already contains files", folder),
				"move it away, or remove it if an interrupted restoration left it")
		}
		if !empty {
			return nil
		}
		// UnpackFolder creates the directory itself.
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

// asideFolder is the directory of a unit that is newer than the backup. It was moved to a path where no agent
// removes it.
type asideFolder struct {
	name string // the directory's path below the environment's directory
	own  string // the directory's original path
	kept string // the directory's new path
	link string // the symlink that led to the directory, or empty if there was none
	to   string // the target of link
}

type asideFolders []asideFolder

// undo moves all directories back, so that their units continue although nothing was restored. If it fails for
// one directory, it still moves the others.
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

// undo moves a unit's directory back to its original path, and creates the symlink to it again if there was one.
func (a asideFolder) undo() error {
	if err := os.Rename(a.kept, a.own); err != nil {
		return fmt.Errorf("cannot put back the unit's directory %s: %w", a.kept, err)
	}
	if a.link == "" {
		return nil
	}
	if err := os.Symlink(a.to, a.link); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot restore the symlink %s: %w", a.link, err)
	}

	return nil
}

// knownUnits returns the directories of the backup's units, as paths below the environment's directory. It
// derives them from the backup's keys: the key machines/M/units/SERVICE/N stands for the directory
// machines/M/units/SERVICE-N.
func (r *restore) knownUnits() map[string]bool {
	known := map[string]bool{}
	for _, k := range r.archive.Keys {
		if machine, unit, ok := strings.Cut(k.Key, "/units/"); ok {
			known[machine+"/units/"+strings.ReplaceAll(unit, "/", "-")] = true
		}
	}

	return known
}

// setAsideUnknown moves away the directories of units that are newer than the backup, since agents remove
// directories of unknown units. It returns the moved directories. If it fails for one directory, it moves the
// others back.
func (r *restore) setAsideUnknown(e home.Environment) (asideFolders, error) {
	dirs, err := e.MachineDirs()
	if err != nil {
		return nil, err
	}

	known := r.knownUnits()
	var moved asideFolders
	for _, dir := range dirs {
		// Glob fails only for an invalid pattern.
		found, _ := filepath.Glob(filepath.Join(dir, "units", "*"))
		for _, folder := range found {
			name, err := filepath.Rel(e.Dir, folder)
			if err != nil {
				return nil, errors.Join(err, moved.undo(r.o))
			}
			if known[name] {
				continue
			}

			newPath := freeName(fmt.Sprintf("%s/set-aside/%s-%s", dir, filepath.Base(folder), r.archive.Sum[:8]))
			aside, err := setAside(name, folder, newPath)
			if err != nil {
				err = console.Hint(fmt.Errorf("cannot set the unit's directory %s aside: %w", folder, err),
					"nothing was restored: free space for the directory, or move it away, and restore again")
				return nil, errors.Join(err, moved.undo(r.o))
			}
			if aside.own == "" {
				// This was a symlink without a directory.
				continue
			}

			r.o.note("  the backup has no unit for the directory %s, which has been moved to %s", name, newPath)
			moved = append(moved, aside)
		}
	}

	return moved, nil
}

// freeName returns the path, or the path with the first number that makes it unused. The path is in use if this
// backup was restored before.
func freeName(path string) string {
	free := path
	for n := 2; ; n++ {
		if _, err := os.Lstat(free); err != nil {
			return free
		}
		free = fmt.Sprintf("%s-%d", path, n)
	}
}

// setAside moves a unit's directory to newPath. If folder is a symlink to the directory, setAside also
// removes the symlink. A dangling symlink is left from a directory that was set aside before: setAside only
// removes it, and returns a zero asideFolder.
func setAside(name, folder, newPath string) (asideFolder, error) {
	own, err := filepath.EvalSymlinks(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return asideFolder{}, os.Remove(folder)
	}
	if err != nil {
		return asideFolder{}, err
	}

	aside := asideFolder{name: name, own: own, kept: newPath}
	// Only a symlink has a target.
	if to, err := os.Readlink(folder); err == nil {
		aside.link = folder
		aside.to = to
	}

	if err := osutil.MkdirAll(filepath.Dir(newPath), 0o755); err != nil {
		return asideFolder{}, err
	}
	if err := os.Rename(own, newPath); err != nil {
		return asideFolder{}, err
	}
	if err := osutil.SyncDir(filepath.Dir(newPath)); err != nil {
		return asideFolder{}, errors.Join(err, aside.undo())
	}
	if aside.link == "" {
		return aside, nil
	}
	if err := os.Remove(aside.link); err != nil {
		return asideFolder{}, errors.Join(err, aside.undo())
	}

	return aside, nil
}

// takeSecretKeys writes the environment's keys for secrets: the keys of the backup, the keys of --key, and
// the environment's own keys, which are newer. If there are no keys, it creates a new key, so that secrets
// can be sealed.
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
			return fmt.Errorf("cannot read the keys in %q: %w", r.cmd.Key, err)
		}
		ring = append(ring, given...)
	}

	own, err := e.SecretKeys().Read()
	if err != nil && !errors.Is(err, secret.ErrNoKey) {
		return err
	}

	// The last key of a ring seals new secrets, so the newest keys come last.
	ring = append(ring, own...)
	if len(ring) == 0 {
		ring = secret.Keyring{secret.NewKey()}
	}
	return e.SecretKeys().Write(ring)
}

// noteStorage prints what happens to storage whose content is not restored. With --replace, it prints a note
// whenever the environment has storage.
func (r *restore) noteStorage(e home.Environment) error {
	return r.o.openUnchecked(e, func(s *state.State) error {
		storages, err := state.Read(r.o.ctx, s, (*state.View).Storages)
		if err != nil {
			return err
		}

		var renewed []string
		for _, storage := range storages {
			// The directory of this storage does not exist yet.
			if storage.Unit != "" && !storage.Made {
				renewed = append(renewed, storage.ID)
			}
		}

		if r.cmd.Replace && len(storages) > 0 {
			r.o.note("  units whose storage is missing also wait; to create their storage again, empty: juju resolved UNIT")
		}
		if !r.cmd.Replace && len(renewed) > 0 {
			r.o.note("  created again, empty: storage %s", strings.Join(renewed, ", "))
		}
		return nil
	})
}

// noteSealed warns of secrets that cannot be opened with the keys that this host has.
func (r *restore) noteSealed(e home.Environment) error {
	ring, err := e.SecretKeys().Read()
	if err != nil {
		return err
	}

	return r.o.openUnchecked(e, func(s *state.State) error {
		unopened, err := state.Read(r.o.ctx, s, func(v *state.View) ([]string, error) {
			return findUnopened(v, ring)
		})
		if err != nil {
			return err
		}
		if len(unopened) == 0 {
			return nil
		}

		r.o.note("warning: no key on this host opens these secrets: %s", strings.Join(unopened, ", "))
		r.o.note("hint: restore with --key FILE, where FILE is the %s from a host of the model in the backup",
			keyfile.FileName)
		return nil
	})
}

// findUnopened returns the ids and owners of the secrets whose latest revision the keys of the ring cannot open. It
// skips a secret whose latest revision was removed.
func findUnopened(v *state.View, ring secret.Keyring) (unopened []string, err error) {
	secrets, err := record.All(v)
	if err != nil {
		return nil, err
	}

	for _, s := range secrets {
		_, err := record.Open(v, ring, s, s.Latest)
		switch {
		case record.IsUnopened(err):
			unopened = append(unopened, fmt.Sprintf("%s of %s", s.ID, s.Owner))
		case errors.Is(err, state.ErrNotFound):
			// The latest revision was removed.
		case err != nil:
			return nil, err
		}
	}

	return unopened, nil
}
