package juju

import (
	"fmt"
	"strings"
)

// maxListed is how many names a hint lists.
const maxListed = 12

// listHint returns a hint with the existing names, for an error about an unknown name.
func listHint(what string, names []string) string {
	switch {
	case len(names) == 0 && what == "storage":
		return "there is no storage"
	case len(names) == 0:
		return "there are no " + what
	}

	more := ""
	if len(names) > maxListed {
		more = fmt.Sprintf(", and %d more", len(names)-maxListed)
		names = names[:maxListed]
	}
	return what + ": " + strings.Join(names, ", ") + more
}
