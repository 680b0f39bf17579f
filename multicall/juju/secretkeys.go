package juju

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/keyfile"
	"bijou/state/secret/record"
)

// resealSecrets seals all secrets with the first key of the ring, a transaction's worth at a time. It returns
// how many revisions it has sealed.
func (o *operator) resealSecrets(s *state.State, ring secret.Keyring) (total int, err error) {
	all, err := state.Read(o.ctx, s, record.All)
	for i, r := range all {
		o.reportSteps(state.Steps{What: "secrets sealed", Done: i, Total: len(all)})
		for n := 1; n > 0 && err == nil; total += n {
			err = state.IgnoreNotFound(s.Update(o.ctx, func(tx *state.Tx) (err error) {
				n, err = record.Reseal(tx, ring, r.ID)
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
	env, eerr := state.Read(o.ctx, s, (*state.View).Environment)
	machines, merr := state.Read(o.ctx, s, (*state.View).Machines)
	if err := errors.Join(err, eerr, merr); err != nil {
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
				"no secret is sealed with a key that it lacks; run this again once it is reachable")
		}
	}

	return nil
}

// putSecretKeys replaces the file of keys of a machine's environment.
func (a Access) putSecretKeys(data []byte) error {
	file := strconv.Quote(filepath.Join(a.Dir, "..", "..", keyfile.FileName))
	give := a.Run("", "umask 077 && cat >"+file+".new && mv "+file+".new "+file, false)
	give.Stdin = bytes.NewReader(data)
	out, err := give.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %.200s", err, out)
	}
	return err
}
