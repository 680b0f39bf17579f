// Package storetest is the conformance suite of the stores. Anything that it does not state is not
// required of a store.
//
// It is a slice of named functions and contains no Go test.
package storetest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"bijou/state/store"
)

// Opener opens the stores under test, and changes them in ways that a store's users cannot. Every field
// except Away is required.
type Opener struct {
	// Fresh creates and opens an empty store. The suite closes it.
	Fresh func(t testing.TB) store.Store
	// Share opens the store behind s a second time, as if in another process. The suite closes it.
	Share func(t testing.TB, s store.Store) store.Store
	// Compact trims the history up to and including the revision.
	Compact func(t testing.TB, s store.Store, revision int64)
	// Expire ends a lease without its holder's knowledge.
	Expire func(t testing.TB, s store.Store, id store.LeaseID)
	// Kill stops s as kill -9 would stop its process. Its leases are no longer refreshed or revoked.
	// After it, the suite calls only Close.
	Kill func(t testing.TB, s store.Store)
	// Away makes the store stop answering until back is called. It is nil for a store that is never
	// away.
	Away func(t testing.TB, s store.Store) (back func())
	// Bubble means that stores are in the test's process and do no I/O. Each case then runs in a
	// bubble of testing/synctest, where waiting takes no time.
	Bubble bool
}

// testCase checks one promise of the interface.
type testCase struct {
	name string
	run  func(f *fixture)
}

// patience limits the time of one case. It does not measure speed.
const patience = 2 * time.Minute

// Run runs the suite, each case on a new store, several at a time.
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

// runCase runs one case on a new store.
func runCase(t *testing.T, o Opener, c testCase) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	f := &fixture{handle: handle{T: t, ctx: ctx}, o: o}
	f.s = o.Fresh(t)
	t.Cleanup(func() { f.s.Close() })
	c.run(f)
}

// fixture contains the handle and the helpers of one case, which runs on a new store.
type fixture struct {
	handle
	o Opener
}

// share returns a second handle on the same store.
func (f *fixture) share() handle {
	f.Helper()
	s := f.o.Share(f.T, f.s)
	f.T.Cleanup(func() { s.Close() })
	return handle{T: f.T, ctx: f.ctx, s: s}
}
