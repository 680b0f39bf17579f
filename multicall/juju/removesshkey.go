package juju

import (
	"fmt"
	"slices"

	"bijou/multicall/console"
)

type removeSSHKeyCmd struct {
	IDs []string `arg:"" name:"key" help:"Keys: fingerprints, comments, or whole keys."`
}

// Run removes all of the keys, or none.
func (c removeSSHKeyCmd) Run(o *operator) error {
	return o.changeSSHKeys(func(keys []string) ([]string, error) {
		for _, id := range c.IDs {
			left := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return isSSHKey(key, id) })
			if len(left) == len(keys) {
				return nil, console.Hint(fmt.Errorf("cannot remove SSH key %.60q: it was not added", id),
					"juju ssh-keys lists them")
			}
			keys = left
		}

		return keys, nil
	})
}

func isSSHKey(line, id string) bool {
	key, err := parseSSHKey(line)
	return sameSSHKey(line, id) || err == nil && (id == key.fingerprint() || id == key.comment && id != "")
}
