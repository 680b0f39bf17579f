package juju

import (
	"fmt"
	"slices"

	"bijou/multicall/console"
)

type removeSSHKeyCmd struct {
	IDs []string `arg:"" name:"key" help:"Keys: fingerprints, comments, or whole keys."`
}

// Run removes all keys that the arguments name. If one of the arguments names no stored key, it removes none.
func (c removeSSHKeyCmd) Run(o *operator) error {
	return o.changeSSHKeys(func(keys []string) ([]string, error) {
		for _, id := range c.IDs {
			if !slices.ContainsFunc(keys, func(key string) bool { return isSSHKey(key, id) }) {
				return nil, console.Hint(fmt.Errorf("cannot remove SSH key %.60q: it was not added", id),
					"juju ssh-keys lists them")
			}
		}

		// Two arguments can name the same key, and one comment can name several keys.
		return slices.DeleteFunc(keys, func(key string) bool {
			return slices.ContainsFunc(c.IDs, func(id string) bool { return isSSHKey(key, id) })
		}), nil
	})
}

// isSSHKey reports whether id names the key in line: as the whole key, its fingerprint or its comment.
func isSSHKey(line, id string) bool {
	if sameSSHKey(line, id) {
		return true
	}

	key, err := parseSSHKey(line)
	// An empty id would equal the comment of a key that has none.
	if err != nil || id == "" {
		return false
	}
	return id == key.fingerprint() || id == key.comment
}
