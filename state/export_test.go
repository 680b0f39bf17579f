package state

import (
	"context"

	"bijou/state/keys"
	"bijou/state/storeurl"
)

// DropClaim removes a machine's claim, as putting the store back to an earlier time does.
func (tx *Tx) DropClaim(machine string) error {
	tx.keys.Remove(keys.Claim(MachineAgent(machine)))
	return nil
}

// Everything reads all keys of the store at a URL that a migration takes along, and
// the format.
func Everything(ctx context.Context, url string) (map[string]string, error) {
	st, err := storeurl.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	found := map[string]string{}
	err = newState(st).View(ctx, func(v *View) error {
		kvs, err := v.keys.List("")
		for _, kv := range kvs {
			if !isStoreLocal(kv.Key) || kv.Key == keys.Format {
				found[kv.Key] = string(kv.Value)
			}
		}
		return err
	})
	return found, err
}
