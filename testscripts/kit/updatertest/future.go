package updatertest

import (
	"strings"
	"testing"

	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
	"bijou/updater/keys"
)

// replaced lists the records that are written whole, by their owner or by a successor. All other
// records are rewritten and keep members that the binary does not know.
func replaced() []string {
	return []string{
		keys.Workers,    // a worker's report about its step
		keys.Activities, // what a worker is doing
		keys.Gate,       // one for each step
		keys.Inventories,
	}
}

// keepFuture gives every record in memory a member that this binary does not know, and fails the test
// if a write drops it.
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
