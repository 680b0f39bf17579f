package updatertest

import (
	"strings"
	"testing"

	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
	"bijou/updater/keys"
)

// replaced lists the records that are written whole, by those whose own they are, or whose place
// another one takes. All others are rewritten, and keep what the binary does not know.
func replaced() []string {
	return []string{
		keys.Workers,    // what a worker says of its step
		keys.Activities, // what a worker is doing
		keys.Gate,       // one a step
		keys.Inventories,
	}
}

// keepFuture has every record in memory have a member that this binary does not know, and fails the
// test if a write drops it.
func keepFuture(t testing.TB, s store.Store) {
	memstore.KeepFuture(s, func(key string) {
		for _, prefix := range replaced() {
			if strings.HasPrefix(key, prefix) {
				return
			}
		}
		t.Errorf("a write of %q drops what a newer binary has stored there: read it in the same transaction, or say in replaced why it is another record", key)
	})
}
