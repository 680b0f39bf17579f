package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bijou/state/access"
	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// session answers the calls of one identity.
type session struct {
	protocol.UnimplementedStoreServer
	g         *Gateway
	who       Identity
	snapshots chan struct{} // has an element for each open snapshot; its buffer is the limit
	blobHeads chan struct{} // has an element while a commit that writes the head of a blob is decided; its buffer is 1
	granting  chan struct{} // has an element while a lease is granted; its buffer is 1
	watches   chan struct{} // has an element for each watch; its buffer is the limit
}

// newSession returns a session for the identity, without open snapshots or watches.
func newSession(g *Gateway, who Identity) *session {
	return &session{
		g:         g,
		who:       who,
		snapshots: make(chan struct{}, maxSnapshots),
		blobHeads: make(chan struct{}, 1),
		granting:  make(chan struct{}, 1),
		watches:   make(chan struct{}, maxWatches),
	}
}

// view is a snapshot with the rights of the identity at its revision, and the conditions on which the rights
// depend. Only one goroutine may use it.
type view struct {
	snap   store.Snapshot
	rights Rights

	keys  map[string]bool // the keys that the rights have read
	conds []store.Cond    // the conditions on everything that the rights have read
}

// openView opens a snapshot, and determines the identity's rights in it. It waits while too many snapshots are
// open. Unless it returns an error, the caller must call closeView.
func (s *session) openView(ctx context.Context) (v *view, closeView func(), err error) {
	select {
	case s.snapshots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}

	snap, err := s.g.store.Snapshot(ctx)
	if err != nil {
		<-s.snapshots
		return nil, nil, err
	}

	v = &view{snap: snap, keys: map[string]bool{}}
	closeView = func() {
		snap.Close()
		<-s.snapshots
	}
	if v.rights, err = s.g.access.Rights(ctx, v, s.who); err != nil {
		closeView()
		return nil, nil, err
	}

	return v, closeView, nil
}

// prefetch tells the snapshot which keys will be read next. The snapshot keeps their values, so prefetch leaves
// out chunks of blobs, which need much memory.
func (v *view) prefetch(ctx context.Context, keys []string) error {
	isChunk := func(key string) bool { return strings.HasPrefix(key, access.BlobChunks) }
	return v.snap.Prefetch(ctx, store.Exactly(slices.DeleteFunc(slices.Clone(keys), isChunk)...))
}

// mayRead returns an error unless the identity can read the key. No identity can read the gateway's own keys.
func (v *view) mayRead(ctx context.Context, key string, value []byte) error {
	if isOwnKey(key) {
		return fmt.Errorf("%w: %q is the gateway's own key", store.ErrDenied, key)
	}
	return v.rights.MayRead(ctx, key, value)
}

// get reads a key for the identity. The value is the part that the identity can see. It returns
// store.ErrDenied if the identity has no right to read the key. kv then has only the key and its revision. ok is
// false if the key is absent.
func (v *view) get(ctx context.Context, key string) (kv store.KV, ok bool, err error) {
	kv, ok, err = v.snap.Get(ctx, key)
	if err != nil {
		return kv, ok, err
	}

	// For mayRead, a nil value means that the key is absent.
	var value []byte
	if ok {
		value = present(kv.Value)
	}
	if err := v.mayRead(ctx, key, value); err != nil {
		return store.KV{Key: key, Revision: kv.Revision}, ok, err
	}
	kv.Value = v.rights.Show(key, kv.Value)
	return kv, ok, nil
}

// Get reads a key for the rights, and adds it to the conditions.
func (v *view) Get(ctx context.Context, key string) (store.KV, bool, error) {
	kv, ok, err := v.snap.Get(ctx, key)
	if err == nil && !v.keys[key] {
		v.keys[key] = true
		v.conds = append(v.conds, store.Cond{Key: key, Revision: kv.Revision})
	}
	return kv, ok, err
}

// List lists a prefix for the rights, and adds it to the conditions.
func (v *view) List(ctx context.Context, prefix string) ([]store.KV, error) {
	kvs, err := v.snap.List(ctx, prefix)
	if err != nil {
		return nil, err
	}

	revision, err := v.snap.Revision(ctx)
	if err != nil {
		return nil, err
	}

	v.conds = append(v.conds, store.Cond{Prefix: prefix, Revision: revision})
	return kvs, nil
}
