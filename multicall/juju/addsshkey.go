package juju

import (
	"slices"

	"bijou/state"
)

type addSSHKeyCmd struct {
	Keys []string `arg:"" name:"key" help:"Public keys, in the form of a *.pub file."`
}

// Run adds the keys that the environment does not have yet. If one of the given keys is invalid, it adds none.
func (c addSSHKeyCmd) Run(o *operator) error {
	for _, key := range c.Keys {
		if _, err := parseSSHKey(key); err != nil {
			return err
		}
	}

	added := 0
	err := o.changeSSHKeys(func(keys []string) ([]string, error) {
		// After a conflict, this function runs again.
		added = 0
		for _, key := range c.Keys {
			isStored := slices.ContainsFunc(keys, func(stored string) bool { return sameSSHKey(stored, key) })
			if !isStored {
				keys = append(keys, key)
				added++
			}
		}
		return keys, nil
	})
	if err != nil {
		return err
	}

	if added == 0 {
		// The environment has all of the given keys already.
		o.note("already stored; nothing to do")
		return nil
	}
	o.note("%s stored; juju ssh does not need such keys: the owner of the model's directory can reach all machines",
		formatCount(added, "key"))
	return nil
}

// changeSSHKeys replaces the environment's keys with the keys that change returns.
func (o *operator) changeSSHKeys(change func(keys []string) ([]string, error)) error {
	return o.update(func(tx *state.Tx) error {
		env, err := tx.Environment()
		if err != nil {
			return err
		}
		keys, err := change(sshKeys(env))
		if err != nil {
			return err
		}

		return tx.SetEnvironment(map[string]*string{state.AuthorizedKeys: joinSSHKeys(keys)})
	})
}
