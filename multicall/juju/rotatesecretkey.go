package juju

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/progress"
	"bijou/state/secret"
	"bijou/state/secretkeys"
	"bijou/state/secrets"
)

type rotateSecretKeyCmd struct {
	Forget bool `help:"Instead, remove the keys of before, once nothing is sealed with them: backups of that time cannot be opened any more."`
}

// Run has all machines know a new key before anything is sealed with it. It may be killed anywhere and run again:
// no key goes by itself.
func (c rotateSecretKeyCmd) Run(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}
	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot rotate the key for secrets: %w", err)
	}
	defer lock.Release()
	return o.openSecrets(func(s *state.State, ring secret.Keyring) error {
		next := slices.Clone(ring)
		if !c.Forget {
			fresh := secret.NewKey()
			if err := o.giveSecretKeys(e, s, append(secret.Keyring{fresh}, ring...)); err != nil {
				return err
			}
			next = append(next, fresh)
			if err := o.giveSecretKeys(e, s, next); err != nil {
				return err
			}
		}
		n, err := o.resealSecrets(s, next)
		switch {
		case err != nil:
			return err
		case c.Forget && n > 0:
			return fmt.Errorf("%s were sealed with an older key, and are sealed anew now: a hook may still use it; run this again later", formatCount(n, "content"))
		case c.Forget:
			return o.giveSecretKeys(e, s, next[len(next)-1:])
		}
		o.note("secrets are sealed with a new key, %s anew; those of before stay, for backups: juju rotate-secret-key --forget removes them", formatCount(n, "content"))
		return nil
	})
}

func (o *operator) resealSecrets(s *state.State, ring secret.Keyring) (total int, err error) {
	all, err := state.Read(o.ctx, s, secrets.All)
	for i, r := range all {
		progress.Report(o.ctx, progress.Steps{What: "secrets sealed", Done: i, Total: len(all)})
		for n := 1; n > 0 && err == nil; total += n {
			err = state.IgnoreNotFound(s.Update(o.ctx, func(tx *state.Tx) (err error) {
				n, err = secrets.Reseal(tx, ring, r.ID)
				return err
			}))
		}
	}
	return total, err
}

// giveSecretKeys writes the keys here, and to each machine that does not have the environment's folder of this host.
func (o *operator) giveSecretKeys(e home.Environment, s *state.State, ring secret.Keyring) error {
	if err := e.SecretKeys().Write(ring); err != nil {
		return err
	}
	data, err := os.ReadFile(string(e.SecretKeys()))
	if err != nil {
		return err
	}
	env, err := state.Read(o.ctx, s, (*state.View).Environment)
	if err != nil {
		return err
	}
	machines, err := state.Read(o.ctx, s, (*state.View).Machines)
	if err != nil {
		return err
	}
	for _, m := range machines {
		if m.InstanceID == "" || m.ID == "0" {
			continue
		}
		to, err := o.parts.Providers.Access(e, env, m)
		if err == nil && to.Host != "" {
			err = to.putSecretKeys(data)
		}
		if err != nil {
			return console.Hint(fmt.Errorf("cannot give machine %s the keys for secrets: %w", m.ID, err),
				"nothing is sealed with a key that it does not have; run this again once it is reached")
		}
	}
	return nil
}

// putSecretKeys replaces the file of keys of a machine's environment.
func (a Access) putSecretKeys(data []byte) error {
	file := strconv.Quote(filepath.Join(a.Dir, "..", "..", secretkeys.Name))
	give := a.Run("umask 077 && cat >"+file+".new && mv "+file+".new "+file, false)
	give.Stdin = bytes.NewReader(data)
	out, err := give.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %.200s", err, out)
	}
	return err
}
