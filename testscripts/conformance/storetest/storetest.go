// Package storetest is the conformance suite of the stores: what it does not
// state, a store need not do.
//
// It is a plain slice of named functions and holds no test of its own. Only
// the stores' tests import it.
package storetest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bijou/state/store"
)

// Opener makes the stores that the suite runs on, and does to them what a
// store's users cannot. Every field is needed, but for Away.
type Opener struct {
	// Fresh makes and opens an empty store. The suite closes it.
	Fresh func(t testing.TB) store.Store
	// Share opens the store behind s a second time, as another process would.
	// The suite closes it.
	Share func(t testing.TB, s store.Store) store.Store
	// Compact trims the history up to and with the revision.
	Compact func(t testing.TB, s store.Store, revision int64)
	// Expire ends a lease behind the back of its holder.
	Expire func(t testing.TB, s store.Store, id store.LeaseID)
	// Kill stops s as kill -9 would stop its process: it neither refreshes nor
	// revokes its leases any more. Its other methods are not called after it,
	// but Close is.
	Kill func(t testing.TB, s store.Store)
	// Away has nobody answer until back is called; nil for a store that is
	// never away.
	Away func(t testing.TB, s store.Store) (back func())
	// Bubble says that stores live within the test's process and do no I/O: each
	// case runs in a bubble of testing/synctest, where waiting takes no time.
	Bubble bool
}

// testCase is one promise of the interface.
type testCase struct {
	name string
	run  func(f *fixture)
}

// patience bounds how long one case may take. It is no measure of speed.
const patience = 2 * time.Minute

// Run runs the suite, each case on a fresh store, several at a time.
func Run(t *testing.T, o Opener) {
	for _, c := range slices.Concat(readCases, commitCases, prefixCases, keyCases, watchCases, streamCases, leaseCases, awayCases, closeCases, raceCases) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if o.Bubble {
				synctest.Test(t, func(t *testing.T) { runCase(t, o, c) })
				return
			}
			runCase(t, o, c)
		})
	}
}

// runCase runs one case on a fresh store.
func runCase(t *testing.T, o Opener, c testCase) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f := &fixture{handle: handle{T: t, ctx: ctx}, o: o}
	f.s = o.Fresh(t)
	t.Cleanup(func() { f.s.Close() })
	c.run(f)
}

// fixture is what one case works with: a handle on a fresh store.
type fixture struct {
	handle
	o Opener
}

// share is a handle on a second opener of the same store.
func (f *fixture) share() handle {
	f.Helper()
	s := f.o.Share(f.T, f.s)
	f.T.Cleanup(func() { s.Close() })
	return handle{T: f.T, ctx: f.ctx, s: s}
}
