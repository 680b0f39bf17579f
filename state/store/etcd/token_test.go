package etcd

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"bijou/state/store"
	"bijou/state/store/handle"
	"bijou/testscripts/kit/need"
)

// TestUnknownToken checks members that are behind the others and do not know a login yet. Reads and commits
// are retried until a member knows it. If none does, they fail like in an outage.
func TestUnknownToken(t *testing.T) {
	need.Whole(t)
	synctest.Test(t, func(t *testing.T) {
		d := &db{Opener: handle.New(), auth: &authenticator{}}
		defer d.Opener.Close(func() {})
		for _, unknown := range []error{rpctypes.ErrInvalidAuthToken, rpctypes.ErrAuthOldRevision} {
			asked := 0
			err := d.retryUnknownToken(t.Context(), func() error {
				if asked++; asked < 5 {
					return unknown
				}
				return store.ErrConflict
			})
			if !errors.Is(err, store.ErrConflict) || asked != 5 {
				t.Errorf("asked %d times: %v", asked, err)
			}
			err = d.retryUnknownToken(t.Context(), func() error { return unknown })
			if err = d.storeError(context.Background(), err); !errors.Is(err, store.ErrAway) {
				t.Errorf("never known: %v", err)
			}
		}
	})
}
