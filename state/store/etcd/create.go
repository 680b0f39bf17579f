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
	"bijou/state/store/handle"
)

// formatVersion is the version of the format of the keys below a store's prefix.
const formatVersion = 1

// markerDoc is the value of a store's marker.
type markerDoc struct {
	Store  string `json:"store"` // "bijou"
	Format int    `json:"format"`
}

// Create creates an empty store at the URL. It returns ErrExists if a store already exists there. It returns
// a different error if there are other keys below the prefix, or if the prefix is inside another store.
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

// withConnection calls f with a handle for the store, and closes the handle afterwards. openTimeout limits
// the connection and f together.
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

// checkNotNested returns an error if the prefix is inside another store. It checks the parents of the prefix
// from the innermost to the outermost. It returns nil at the first parent that the user cannot read: nobody grants
// rights to only a part of a store, so there is no store at that parent or further out.
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
			return fmt.Errorf("prefix %q is inside the store at %q: stores cannot be nested",
				d.config.prefix, prefix)
		}
	}
}

// writeMarker writes the marker and the swept revision of a new store. It returns ErrExists if a store
// already exists there, and a different error if there are other keys below the store's prefix.
func (d *db) writeMarker(ctx context.Context) error {
	if err := d.waitReady(ctx); err != nil {
		return err
	}
	marker, err := json.Marshal(markerDoc{"bijou", formatVersion})
	if err != nil {
		return err
	}

	// Version 0 means that a key is absent. The comparison with a range holds only if it holds for all of its keys.
	keys := d.keys.storeRange()
	noKeysExist := clientv3.Compare(clientv3.Version(keys.begin).WithRange(keys.end), "=", 0)
	var resp *clientv3.TxnResponse
	err = d.retryUnknownToken(ctx, func() (err error) {
		resp, err = d.client.Txn(ctx).
			If(noKeysExist).
			Then(clientv3.OpPut(d.keys.markerKey(), string(marker)),
				clientv3.OpPut(d.keys.sweptKey(), sweptValue(0))).
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

	return fmt.Errorf("other keys exist below %q: choose an empty prefix", d.keys.root)
}

// readMarker returns the revision at which the store was created. It returns [store.ErrNoStore] if there is
// no marker, and a different error if the marker is not bijou's, or its format is not formatVersion.
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
		return 0, errors.New("this is not a bijou store")
	}
	if doc.Format != formatVersion {
		return 0, fmt.Errorf("the store has format %d, but this bijou supports only format %d", doc.Format, formatVersion)
	}

	return resp.Kvs[0].CreateRevision, nil
}

// markerUnchanged returns a comparison that holds if the store is still the one that this process has opened.
func (d *db) markerUnchanged() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(d.keys.markerKey()), "=", d.marker)
}

// Remove deletes the store at the URL with all its keys. Processes that have the store open get ErrStoreGone.
// Remove returns no error if there is no store.
func Remove(ctx context.Context, url string) error {
	p, err := parseURL(url)
	if err != nil {
		return err
	}

	err = withConnection(ctx, p, func(ctx context.Context, d *db) error {
		if _, err := d.readMarker(ctx); err != nil {
			return err
		}
		keys := d.keys.storeRange()
		_, err := d.client.Delete(ctx, keys.begin, clientv3.WithRange(keys.end))
		return d.storeError(ctx, err)
	})
	if err != nil && !errors.Is(err, store.ErrNoStore) {
		return fmt.Errorf("cannot remove store %q: %w", url, err)
	}

	return nil
}

// keyCodec maps the store's keys to etcd's keys. Most keys are stored unchanged below the root, so that etcdctl
// shows them:
//
//	ROOT + key               a key of the store
//	ROOT + \x01 + key        a key that begins with \x00 or \x01
//	ROOT + \x00store         the marker that makes the prefix a store
//	ROOT + \x00gone/ + key   a tombstone: the key was deleted, or put under a lease
//	ROOT + \x00swept         the revision up to which tombstones may have been swept
//
// So the keys keep their order, and the range of a prefix does not contain the marker, tombstones or the swept
// revision.
type keyCodec struct {
	root string // ends with a slash
}

// keyRange is the range of keys from begin to end, without end itself. If end is empty, the range is only the
// key begin.
type keyRange struct{ begin, end string }

func (s keyCodec) markerKey() string { return s.root + "\x00store" }
func (s keyCodec) sweptKey() string  { return s.root + "\x00swept" }

// encodeKey returns etcd's key for a key of the store.
func (s keyCodec) encodeKey(key string) string {
	if key != "" && key[0] <= 1 {
		return s.root + "\x01" + key
	}
	return s.root + key
}

// decodeKey is the inverse of encodeKey.
func (s keyCodec) decodeKey(etcdKey []byte) string {
	return strings.TrimPrefix(string(etcdKey[len(s.root):]), "\x01")
}

// prefixRange returns the range of etcd's keys for the store's keys with a prefix.
func (s keyCodec) prefixRange(prefix string) keyRange {
	if prefix == "" {
		// The range begins after the marker, the tombstones and the swept revision.
		return keyRange{s.root + "\x01", clientv3.GetPrefixRangeEnd(s.root)}
	}
	return rangeOf(s.encodeKey(prefix))
}

// spanRange returns the range of etcd's keys for one key or prefix.
func (s keyCodec) spanRange(span handle.Span) keyRange {
	if span.Prefix {
		return s.prefixRange(span.Text)
	}
	return keyRange{begin: s.encodeKey(span.Text)}
}

// tombstoneSpan returns the range of etcd's keys for the tombstones of one key or prefix.
func (s keyCodec) tombstoneSpan(span handle.Span) keyRange {
	if span.Prefix {
		return s.tombstoneRange(span.Text)
	}
	return keyRange{begin: s.tombstoneKey(span.Text)}
}

func (s keyCodec) tombstoneKey(key string) string        { return s.root + "\x00gone/" + key }
func (s keyCodec) tombstoneRange(prefix string) keyRange { return rangeOf(s.tombstoneKey(prefix)) }
func (s keyCodec) storeRange() keyRange                  { return rangeOf(s.root) }

func rangeOf(prefix string) keyRange { return keyRange{prefix, clientv3.GetPrefixRangeEnd(prefix)} }

// sweptValue formats a revision with a fixed number of digits, so that the values sort like the revisions.
func sweptValue(revision int64) string { return fmt.Sprintf("%016x", revision) }
