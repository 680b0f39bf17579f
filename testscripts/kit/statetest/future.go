package statetest

import (
	"regexp"
	"slices"
	"testing"

	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
)

// replaced lists the records that writers replace with new records, without any of the old members. All other
// records are rewritten and keep members that the binary does not know.
func replaced() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`^uniters/.+/op$`),               // the next hook begins as one ends
		regexp.MustCompile(`^services/[^/]+/upgrade$`),      // another upgrade
		regexp.MustCompile(`^services/[^/]+/status$`),       // another status
		regexp.MustCompile(`^resources/`),                   // another file
		regexp.MustCompile(`^history/.+/[0-9]+$`),           // another hook, in the place of the oldest
		regexp.MustCompile(`^units/.+/debug$`),              // another session
		regexp.MustCompile(`^(first-units|spares)/[0-9]+$`), // taken and released in one transaction
	}
}

// IsReplaced reports whether writers replace the record at the key with a new record, and so drop the members
// that a newer binary has added.
func IsReplaced(key string) bool {
	return slices.ContainsFunc(replaced(), func(r *regexp.Regexp) bool { return r.MatchString(key) })
}

// KeepFuture gives every record of an environment in memory a member that this binary does not know,
// and fails the test if a write drops it.
func KeepFuture(t testing.TB, s store.Store) {
	memstore.KeepFuture(s, func(key string) {
		if IsReplaced(key) {
			return
		}
		t.Errorf("a write of %q drops what a newer binary has stored there: read it in the same transaction, or say in replaced why it is another record", key)
	})
}
