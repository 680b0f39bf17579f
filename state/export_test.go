package state

import "context"

// DropClaim removes a machine's claim, as putting the store back to an earlier time does.
func (tx *Tx) DropClaim(machine string) error {
	tx.remove(claimKey(MachineAgent(machine)))
	return nil
}

// Everything reads all keys of the store at a URL that a migration takes along, and
// the format.
func Everything(ctx context.Context, url string) (map[string]string, error) {
	st, err := openStore(ctx, url)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	found := map[string]string{}
	err = (&State{store: st}).View(ctx, func(v *View) error {
		kvs, err := v.list("")
		for _, kv := range kvs {
			if !isStoreLocal(kv.Key) || kv.Key == formatKey {
				found[kv.Key] = string(kv.Value)
			}
		}
		return err
	})
	return found, err
}
