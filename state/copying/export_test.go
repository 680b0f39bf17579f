package copying

import (
	"context"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/storeurl"
)

// Everything reads the format and all keys that a migration copies, from the store at a URL.
func Everything(ctx context.Context, url string) (map[string]string, error) {
	st, err := storeurl.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	found := map[string]string{}
	err = state.OpenIn(st).View(ctx, func(v *state.View) error {
		kvs, err := v.Keys().List("")
		for _, kv := range kvs {
			if !isStoreLocal(kv.Key) || kv.Key == keys.Format {
				found[kv.Key] = string(kv.Value)
			}
		}
		return err
	})
	return found, err
}
