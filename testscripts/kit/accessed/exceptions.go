package accessed

import (
	"bytes"
	"slices"
	"strings"

	"bijou/state/access"
)

// exception is a request that agents still make although the table refuses it, with the reason.
type exception struct {
	name string
	has  func(op access.Op, parts []string, isGone func(unit string) bool) bool
	why  string
}

// IsExcepted reports whether an exception covers the request. isGone must report [IsGone] of a unit's record.
func IsExcepted(op access.Op, key string, isGone func(unit string) bool) bool {
	parts := strings.Split(key, "/")
	return slices.ContainsFunc(exceptions(), func(e exception) bool { return e.has(op, parts, isGone) })
}

// IsGone reports whether a unit with the given record has been removed, or only its removal is left to do. record is
// nil if there is none.
func IsGone(record []byte) bool {
	return record == nil || bytes.Contains(record, []byte(`"life":"dead"`))
}

func exceptions() []exception {
	return []exception{
		{"others' secrets", func(op access.Op, p []string, _ func(string) bool) bool {
			return op == access.Get && p[0] == "secrets"
		}, "secret-get asks for the record of a secret that was not granted: the refusal is its answer"},
		{"last lines", func(_ access.Op, p []string, isGone func(string) bool) bool {
			return (p[0] == "logs" || p[0] == "log") && len(p) > 2 && isGone(p[1]+"/"+p[2])
		}, "a unit that was removed by force may have lines that are not sent yet: an agent that is refused drops them"},
		{"last records", func(op access.Op, p []string, isGone func(string) bool) bool {
			isRecord := (op == access.Put || op == access.Delete) && p[0] == "uniters"
			isHook := op == access.Put && p[0] == "history"
			isRemoval := op == access.Put && p[0] == "requests" && p[len(p)-1] == "remove"
			return (isRecord || isHook || isRemoval) && len(p) > 2 && isGone(p[1]+"/"+p[2])
		}, "an agent may write about its unit, and ask for its removal, until it knows that the unit was removed by force"},
	}
}
