package juju

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/keyfile"
	"bijou/state/secret/record"
)

// resealSecrets seals all secrets with the last key of the ring, in several transactions. It returns how many
// revisions it has sealed, and prints the secrets that cannot be opened with any key of the ring.
func (o *operator) resealSecrets(s *state.State, ring secret.Keyring) (total int, err error) {
	secrets, err := state.Read(o.ctx, s, record.All)
	if err != nil {
		return 0, err
	}

	var unopened []string
	for i, r := range secrets {
		o.reportSteps(state.Steps{What: "secrets sealed", Done: i, Total: len(secrets)})
		n, unopenedRevisions, err := o.resealSecret(s, ring, r.ID)
		total += n
		if err != nil {
			return total, err
		}
		if len(unopenedRevisions) > 0 {
			unopened = append(unopened, fmt.Sprintf("%s of %s", r.ID, r.Owner))
		}
	}

	if len(unopened) > 0 {
		o.note("warning: no key on this host opens these secrets, which stay as they are: %s", strings.Join(unopened, ", "))
	}
	return total, nil
}

// resealSecret seals the revisions of one secret with the last key of the ring. It returns how many revisions
// it has sealed, and which revisions cannot be opened with any key of the ring. It ignores a secret that was
// removed.
func (o *operator) resealSecret(s *state.State, ring secret.Keyring, id string) (total int, unopened []int, err error) {
	// One transaction seals only some revisions.
	for {
		n := 0
		err := s.Update(o.ctx, func(tx *state.Tx) (err error) {
			n, unopened, err = record.Reseal(tx, ring, id)
			return err
		})
		if err != nil {
			return total, unopened, state.IgnoreNotFound(err)
		}
		if n == 0 {
			return total, unopened, nil
		}
		total += n
	}
}

// giveSecretKeys writes the keys into the environment's directory on this host, and on each machine that has an
// instance and does not use that directory.
func (o *operator) giveSecretKeys(e home.Environment, s *state.State, ring secret.Keyring) error {
	if err := e.SecretKeys().Write(ring); err != nil {
		return err
	}

	// Write has kept the file's unknown fields, so the machines get them too.
	data, fileErr := os.ReadFile(string(e.SecretKeys()))
	env, envErr := state.Read(o.ctx, s, (*state.View).Environment)
	machines, machinesErr := state.Read(o.ctx, s, (*state.View).Machines)
	if err := errors.Join(fileErr, envErr, machinesErr); err != nil {
		return err
	}

	for _, m := range machines {
		// A machine without an instance gets the keys when it is started. Machine 0 is this host.
		if m.InstanceID == "" || m.ID == "0" {
			continue
		}

		if err := o.copySecretKeys(e, env, m, data); err != nil {
			return console.Hint(fmt.Errorf("cannot copy the keys for secrets to machine %s: %w", m.ID, err),
				"secrets still use a key that the machine has; run this again once the machine is reachable")
		}
	}

	return nil
}

// copySecretKeys copies the file of keys to one machine. It does nothing if the machine uses the environment's
// directory on this host.
func (o *operator) copySecretKeys(e home.Environment, env state.Environment, m state.Machine, data []byte) error {
	access, err := o.parts.Providers.Access(e, env, m)
	if err != nil {
		return err
	}
	// An empty host stands for this host.
	if access.Host == "" {
		return nil
	}
	return access.putSecretKeys(data)
}

// putSecretKeys replaces the file of keys in the environment's directory on a machine.
func (a Access) putSecretKeys(data []byte) error {
	// The machine's directory is two levels below the environment's directory.
	file := strconv.Quote(filepath.Join(a.Dir, "..", "..", keyfile.FileName))
	const loginDir = ""
	const terminal = false
	command := a.Run(loginDir, "umask 077 && cat >"+file+".new && mv "+file+".new "+file, terminal)
	command.Stdin = bytes.NewReader(data)
	out, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.200s", err, out)
	}
	return nil
}
