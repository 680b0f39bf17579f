package juju

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/archive"
	"bijou/state/secret"
	"bijou/state/secretkeys"
	"bijou/state/secrets"
)

// chooseStateURL returns the backup's own URL with --replace and without --state, unless
// that is a file, which may be in another folder.
func (r *restore) chooseStateURL(e home.Environment) (string, error) {
	if !r.cmd.Replace || r.cmd.State != "" || !strings.HasPrefix(r.archive.State, "etcd") {
		return e.KeepCredentials(e.State)
	}
	for _, name := range r.archive.Names(archive.CredentialName("")) {
		if name == archive.SecretKeysName() {
			continue
		}
		if err := r.writeCredential(e, name); err != nil {
			return "", err
		}
	}
	return e.LocateState(r.archive.State)
}

func (r *restore) writeCredential(e home.Environment, name string) error {
	data, err := r.archive.ReadAll(name, maxCredentialSize)
	if err != nil {
		return err
	}
	path := filepath.Join(e.Dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// maxCredentialSize is in bytes.
const maxCredentialSize = 1 << 20

// unpackUnits leaves folders alone that are there.
func (r *restore) unpackUnits(e home.Environment) error {
	for _, name := range r.archive.Names("machines/") {
		dir := filepath.Join(e.Dir, strings.TrimSuffix(name, ".tar"))
		if _, err := os.Lstat(dir); err == nil {
			continue
		}
		content, err := r.archive.Open(name)
		if err != nil {
			return err
		}
		if err := errors.Join(home.UnpackFolder(content, dir), content.Close()); err != nil {
			return err
		}
	}
	return nil
}

// setAsideUnknown keeps the folders of units that are newer than the backup: agents remove
// what is no unit's.
func (r *restore) setAsideUnknown(e home.Environment) error {
	known := map[string]bool{}
	for _, k := range r.archive.Keys {
		if machine, unit, ok := strings.Cut(k.Key, "/units/"); ok {
			known[machine+"/units/"+strings.ReplaceAll(unit, "/", "-")] = true
		}
	}
	dirs, err := e.MachineDirs()
	for _, dir := range dirs {
		found, _ := filepath.Glob(filepath.Join(dir, "units", "*"))
		for _, folder := range found {
			name, rerr := filepath.Rel(e.Dir, folder)
			if err = errors.Join(err, rerr); err != nil || known[name] {
				continue
			}
			aside := fmt.Sprintf("%s/set-aside/%s-%s", dir, filepath.Base(folder), r.archive.Sum[:8])
			own, lerr := filepath.EvalSymlinks(folder)
			err = errors.Join(lerr, os.MkdirAll(filepath.Dir(aside), 0o755), os.Rename(own, aside))
			if lerr = os.Remove(folder); !errors.Is(lerr, fs.ErrNotExist) { // the link to it
				err = errors.Join(err, lerr)
			}
			r.o.note("  the backup has no unit of the folder %s, which is %s now", name, aside)
		}
	}
	return err
}

// takeSecretKeys puts the keys of the backup, and those of --key, before the environment's
// own, which are newer; there is always one that seals.
func (r *restore) takeSecretKeys(e home.Environment) error {
	var ring secret.Keyring
	if name := archive.SecretKeysName(); slices.Contains(r.archive.Names(name), name) {
		data, err := r.archive.ReadAll(name, maxCredentialSize)
		if err == nil {
			ring, err = secretkeys.Parse(data)
		}
		if err != nil {
			return err
		}
	}
	if r.cmd.Key != "" {
		given, err := secretkeys.File(r.cmd.Key).Read()
		if err != nil {
			return fmt.Errorf("cannot take the keys of %q: %w", r.cmd.Key, err)
		}
		ring = append(ring, given...)
	}
	own, err := e.SecretKeys().Read()
	if err != nil && !errors.Is(err, secret.ErrNoKey) {
		return err
	}
	if ring = append(ring, own...); len(ring) == 0 {
		ring = secret.Keyring{secret.NewKey()}
	}
	return e.SecretKeys().Write(ring)
}

// noteSealed names the secrets that cannot be opened.
func (r *restore) noteSealed(e home.Environment) error {
	ring, err := e.SecretKeys().Read()
	if err != nil {
		return err
	}
	return r.o.openUnchecked(e, func(s *state.State) error {
		sealed, err := state.Read(r.o.ctx, s, func(v *state.View) (sealed []string, err error) {
			all, err := secrets.All(v)
			for _, one := range all {
				_, oerr := secrets.Open(v, ring, one, one.Latest)
				if errors.Is(oerr, secret.ErrNoKey) {
					sealed = append(sealed, fmt.Sprintf("%s of %s", one.ID, one.Owner))
				} else if !errors.Is(oerr, state.ErrNotFound) { // that revision was removed
					err = errors.Join(err, oerr)
				}
			}
			return sealed, err
		})
		if len(sealed) > 0 {
			r.o.note("warning: nothing here opens these secrets: %s", strings.Join(sealed, ", "))
			r.o.note("hint: restore with --key FILE, the %s of a host of the environment that was backed up", secretkeys.Name)
		}
		return err
	})
}
