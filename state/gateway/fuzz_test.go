package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"bijou/state/store"
	"bijou/state/store/remote/protocol"
	"bijou/testscripts/fakes/memstore"
)

// ownOnly allows an identity to read and write keys below own/.
type ownOnly struct{}

func (ownOnly) Rights(context.Context, View, Identity) (Rights, error) { return ownOnly{}, nil }

func (ownOnly) isOwn(key string) error {
	if strings.HasPrefix(key, "own/") {
		return nil
	}
	return fmt.Errorf("%w: %q", store.ErrDenied, key)
}

func (r ownOnly) MayRead(_ context.Context, key string, _ []byte) error { return r.isOwn(key) }
func (r ownOnly) Show(_ string, value []byte) []byte                    { return value }
func (r ownOnly) MayList(context.Context, string) error                 { return nil }
func (r ownOnly) MayWatch(context.Context, string) error                { return nil }
func (r ownOnly) MayWatchPrefix(context.Context, string) error          { return nil }
func (r ownOnly) MayCommit(_ context.Context, ops []store.Op) (err error) {
	for _, o := range ops {
		if err == nil {
			err = r.isOwn(o.Key)
		}
	}
	return err
}

// FuzzRequests sends any bytes as each of the requests. No request may change or show the keys of other
// identities.
func FuzzRequests(f *testing.F) {
	add := func(m proto.Message) {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	add(protocol.FromTxn(store.Txn{Conds: []store.Cond{{Key: "own/a"}, {Prefix: "other/", Revision: 1}}, Ops: []store.Op{{Key: "own/b", Value: []byte("1")}, {Key: "other/b"}}}))
	add(protocol.FromTxn(store.Txn{Ops: []store.Op{{Key: "own/b", Lease: 1}, {Key: "gateway-leases/machine-1/1", Delete: true}}}))
	add(&protocol.ReadRequest{Keys: protocol.FromKeys([]string{"own/a", "other/a", ""}), List: true, Prefix: []byte("o")})
	add(&protocol.WatchRequest{After: 1, Prefixes: protocol.FromKeys([]string{"", "own/"})})
	add(&protocol.GrantRequest{TtlMilliseconds: -1})

	f.Fuzz(func(t *testing.T, data []byte) {
		base := memstore.New()
		defer base.Close()
		if _, err := base.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "other/a", Value: []byte("1")}, {Key: "own/a", Value: []byte("1")}}}); err != nil {
			t.Fatal(err)
		}
		g, err := New(base, ownOnly{})
		if err != nil {
			t.Fatal(err)
		}
		s := newSession(g, "machine-1")
		before := others(t, base)

		commit, read, watch, grant := &protocol.CommitRequest{}, &protocol.ReadRequest{}, &protocol.WatchRequest{}, &protocol.GrantRequest{}
		if proto.Unmarshal(data, commit) == nil {
			_, _ = s.Commit(t.Context(), commit)
		}
		if proto.Unmarshal(data, grant) == nil {
			_, _ = s.Grant(t.Context(), grant)
			_, _ = s.Refresh(t.Context(), &protocol.RefreshRequest{Lease: grant.GetTtlMilliseconds()})
			_, _ = s.Revoke(t.Context(), &protocol.RevokeRequest{Lease: grant.GetTtlMilliseconds()})
		}
		if proto.Unmarshal(data, read) == nil {
			v, closeView, err := s.openView(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = v.answer(t.Context(), read, func(r *protocol.ReadResponse) error {
				for _, kv := range r.GetFound() {
					if !strings.HasPrefix(string(kv.GetKey()), "own/") {
						t.Errorf("%q was shown", kv.GetKey())
					}
				}
				return nil
			})
			closeView()
		}
		if proto.Unmarshal(data, watch) == nil {
			ctx, cancel := context.WithCancel(t.Context())
			_ = s.watch(ctx, watch, func(r *protocol.WatchResponse) error {
				cancel() // at the first message, because the others arrive later
				return nil
			})
			cancel()
		}
		if diff := cmp.Diff(before, others(t, base)); diff != "" {
			t.Errorf("what is not the identity's has changed:\n%s", diff)
		}
	})
}

// others lists the keys that are neither the identity's nor the gateway's own.
func others(t *testing.T, s store.Store) (kvs []store.KV) {
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	all, err := snap.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all {
		if !strings.HasPrefix(kv.Key, "own/") && !isOwnKey(kv.Key) {
			kvs = append(kvs, kv)
		}
	}
	return kvs
}
