package juju

import (
	"fmt"
	"strings"
)

// maxListed is the largest number of names that a hint lists.
const maxListed = 12

// listHint returns a hint with the existing names, for an error about an unknown name. It lists the first
// maxListed of them, and counts the rest. label is the plural word for the named entities, such as units.
func listHint(label string, names []string) string {
	switch {
	case len(names) == 0 && label == "storage":
		return "there is no storage"
	case len(names) == 0:
		return "there are no " + label
	}

	more := ""
	if len(names) > maxListed {
		more = fmt.Sprintf(", and %d more", len(names)-maxListed)
		names = names[:maxListed]
	}
	return label + ": " + strings.Join(names, ", ") + more
}
