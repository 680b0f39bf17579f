package juju

import (
	"fmt"
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/charm"
)

// isUnitWord reports whether the word has the form of a unit's name, or is SERVICE/leader.
func isUnitWord(word string) bool { return charm.IsUnit(word) || strings.HasSuffix(word, leaderSuffix) }

const leaderSuffix = "/leader"

// findUnitName returns the leader's unit for SERVICE/leader, and any other word unchanged. It returns an error if
// the service has no leader.
func findUnitName(v *state.View, word string) (string, error) {
	service, ok := strings.CutSuffix(word, leaderSuffix)
	if !ok {
		return word, nil
	}

	unit, err := v.Leader(service)
	if err != nil {
		return unit, err
	}
	if unit == "" {
		return unit, fmt.Errorf("there is no application %q, or it has no leader now", service)
	}

	return unit, nil
}

// distinct returns the names without repetitions, in their order.
func distinct(names []string) (unique []string) {
	for _, name := range names {
		if !slices.Contains(unique, name) {
			unique = append(unique, name)
		}
	}
	return unique
}
