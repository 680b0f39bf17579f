package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// formatVersion is the format of the keys below a store's prefix.
const formatVersion = 1

type markerDoc struct {
	Store  string `json:"store"` // "bijou"
	Format int    `json:"format"`
}

// Create makes an empty store at the URL; if there is one already, it returns ErrExists. A
// prefix is refused if other keys lie below it, or if it lies in another store.
func Create(ctx context.Context, url string) error {
	p, err := parseURL(url)
	if err != nil {
		return err
	}
	err = withConnection(ctx, p, func(ctx context.Context, d *db) error {
		if err := d.checkNotNested(ctx); err != nil {
			return err
		}
		return d.writeMarker(ctx)
	})
	if err != nil {
		return fmt.Errorf("cannot create store %q: %w", url, err)
	}
	return nil
}

func withConnection(ctx context.Context, p config, f func(ctx context.Context, d *db) error) error {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	d, err := connect(ctx, p)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(ctx, d)
}

// A user who may not read the prefixes above is not told of a store there; nobody gives
// users rights in the middle of a store.
func (d *db) checkNotNested(ctx context.Context) error {
	for prefix := d.config.prefix; ; {
		prefix = prefix[:strings.LastIndexByte(prefix, '/')]
		if prefix == "" {
			return nil
		}
		resp, err := d.get(ctx, keyCodec{prefix + "/"}.markerKey(), clientv3.WithCountOnly())
		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			return nil
		}
		if err != nil {
			return err
		}
		if resp.Count > 0 {
			return fmt.Errorf("prefix %q lies in the store at %q: stores lie beside one another", d.config.prefix, prefix)
		}
	}
}

func (d *db) writeMarker(ctx context.Context) error {
	if err := d.waitReady(ctx); err != nil {
		return err
	}
	marker, err := json.Marshal(markerDoc{"bijou", formatVersion})
	if err != nil {
		return err
	}
	all := d.keys.storeRange()
	var resp *clientv3.TxnResponse
	err = d.retryUnknownToken(ctx, func() (err error) {
		resp, err = d.client.Txn(ctx).
			If(clientv3.Compare(clientv3.Version(all.begin).WithRange(all.end), "=", 0)).
			Then(clientv3.OpPut(d.keys.markerKey(), string(marker)), clientv3.OpPut(d.keys.sweptKey(), sweptValue(0))).
			Else(clientv3.OpGet(d.keys.markerKey(), clientv3.WithCountOnly())).
			Commit()
		return err
	})
	switch {
	case err != nil:
		return d.storeError(ctx, err)
	case resp.Succeeded:
		return nil
	case resp.Responses[0].GetResponseRange().Count > 0:
		return store.ErrExists
	}
	return fmt.Errorf("other keys lie below %q: take a prefix of its own", d.keys.root)
}

func (d *db) readMarker(ctx context.Context) (createRevision int64, err error) {
	resp, err := d.get(ctx, d.keys.markerKey())
	if err != nil {
		return 0, err
	}
	if len(resp.Kvs) == 0 {
		return 0, store.ErrNoStore
	}
	var doc markerDoc
	if err := json.Unmarshal(resp.Kvs[0].Value, &doc); err != nil || doc.Store != "bijou" {
		return 0, errors.New("it is not a bijou store")
	}
	if doc.Format != formatVersion {
		return 0, fmt.Errorf("it has format %d, and this bijou knows format %d only", doc.Format, formatVersion)
	}
	return resp.Kvs[0].CreateRevision, nil
}

func (d *db) markerUnchanged() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(d.keys.markerKey()), "=", d.marker)
}
