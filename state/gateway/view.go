package gateway

import (
	"context"
	"fmt"

	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// session answers one identity's calls.
type session struct {
	protocol.UnimplementedStoreServer
	g         *Gateway
	who       Identity
	snapshots chan struct{} // buffered: one for each that is open
}

// view is one snapshot, the rights of the identity as of its revision, and on which conditions these
// go on. It is for one goroutine.
type view struct {
	snap   store.Snapshot
	rights Rights

	keys  map[string]bool // that the rights were decided by
	conds []store.Cond
}

// openView opens a snapshot, which waits for its turn; close ends that.
func (s *session) openView(ctx context.Context) (v *view, close func(), err error) {
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
	close = func() {
		snap.Close()
		<-s.snapshots
	}
	if v.rights, err = s.g.access.Rights(ctx, v, s.who); err != nil {
		close()
		return nil, nil, err
	}

	return v, close, nil
}

// mayRead asks the rights. Nobody has any to the gateway's own keys.
func (v *view) mayRead(ctx context.Context, key string, value []byte) error {
	if isOwnKey(key) {
		return fmt.Errorf("%w: %q is the gateway's own key", store.ErrDenied, key)
	}
	return v.rights.MayRead(ctx, key, value)
}

// get reads one key for the identity.
func (v *view) get(ctx context.Context, key string) (kv store.KV, ok bool, err error) {
	kv, ok, err = v.snap.Get(ctx, key)
	if err != nil {
		return kv, ok, err
	}

	var value []byte
	if ok {
		value = present(kv.Value)
	}
	return kv, ok, v.mayRead(ctx, key, value)
}

// Get reads for the rights, and remembers what was read.
func (v *view) Get(ctx context.Context, key string) (store.KV, bool, error) {
	kv, ok, err := v.snap.Get(ctx, key)
	if err == nil && !v.keys[key] {
		v.keys[key] = true
		v.conds = append(v.conds, store.Cond{Key: key, Revision: kv.Revision})
	}
	return kv, ok, err
}

// List reads for the rights, and remembers what was read.
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
