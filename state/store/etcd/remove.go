package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// Remove deletes the store at the URL with all its keys, at once: whoever has it
// open gets ErrStoreGone. A store that is not there is no error.
func Remove(ctx context.Context, url string) error {
	p, err := parseURL(url)
	if err != nil {
		return err
	}
	err = withConnection(ctx, p, func(ctx context.Context, d *db) error {
		if _, err := d.readMarker(ctx); err != nil {
			return err
		}
		all := d.keys.storeRange()
		_, err := d.client.Delete(ctx, all.begin, clientv3.WithRange(all.end))
		return d.storeError(ctx, err)
	})
	if err != nil && !errors.Is(err, store.ErrNoStore) {
		return fmt.Errorf("cannot remove store %q: %w", url, err)
	}
	return nil
}
