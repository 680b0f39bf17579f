package accessed

import (
	"slices"
	"strings"

	"bijou/state/access"
)

// exception is something that agents still do and the table refuses, with the reason. Each is to go.
type exception struct {
	name string
	has  func(op access.Op, parts []string, isGone func(unit string) bool) bool
	why  string
}

func isExcepted(op access.Op, key string, isGone func(unit string) bool) bool {
	parts := strings.Split(key, "/")
	return slices.ContainsFunc(exceptions(), func(e exception) bool { return e.has(op, parts, isGone) })
}

func exceptions() []exception {
	writes := func(op access.Op) bool { return op == access.Put || op == access.Delete }
	return []exception{
		{"ends", func(op access.Op, p []string, _ func(string) bool) bool {
			return op == access.Delete && (p[0] == "relations" && (len(p) == 2 || p[2] != "members") ||
				p[0] == "services" || p[0] == "resources") ||
				op == access.List && (p[0] == "resources" || p[0] == "services" ||
					p[0] == "relations" && len(p) == 4 && (p[2] == "settings" || p[2] == "apps"))
		}, "the last one to leave a relation ends it, with what others have there, and the last unit of a service the service: that becomes the provisioner's"},
		{"removes itself", func(op access.Op, p []string, _ func(string) bool) bool {
			return op == access.Delete && (p[0] == "units" || p[0] == "uniters" || p[0] == "history" || p[0] == "machines" && len(p) > 3) ||
				op == access.List && (p[0] == "units" || p[0] == "uniters" || p[0] == "history")
		}, "a unit's agent removes the unit with all that is its own: that becomes the provisioner's"},
		{"subordinates", func(op access.Op, p []string, _ func(string) bool) bool {
			return writes(op) && (p[0] == "units" && len(p) == 3 || p[0] == "machines" && len(p) > 3 || p[0] == "counters" && p[1] == "units") ||
				op == access.Get && p[0] == "counters" && p[1] == "units"
		}, "a principal's agent makes its subordinate, ends it, and a subordinate leaves the record of its principal: that becomes the provisioner's"},
		{"unused machines", func(op access.Op, p []string, _ func(string) bool) bool {
			return p[0] == "spares" || p[0] == "first-units"
		}, "a unit that leaves before anything was installed gives its machine back: that becomes the provisioner's"},
		{"others' secrets", func(op access.Op, p []string, _ func(string) bool) bool {
			return op == access.Get && p[0] == "secrets"
		}, "secret-get reads the record of a secret to say that it was not granted: the refusal is to say so"},
		{"last lines", func(_ access.Op, p []string, isGone func(string) bool) bool {
			return (p[0] == "logs" || p[0] == "log") && len(p) > 2 && isGone(p[1]+"/"+p[2])
		}, "a unit that was removed by force may have lines that are not sent yet: an agent that is refused is to drop them"},
	}
}
