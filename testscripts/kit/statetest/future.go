package statetest

import (
	"regexp"
	"slices"
	"testing"

	"bijou/state/store"
	"bijou/testscripts/fakes/memstore"
)

// replaced lists the records that are replaced by new ones with none of the old members. All other
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

// IsReplaced reports whether the record at the key is replaced by one with none of its members,
// including those of a newer binary.
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
