package juju

import (
	"fmt"
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/charm"
)

func isUnitWord(word string) bool { return charm.IsUnit(word) || strings.HasSuffix(word, leaderSuffix) }

const leaderSuffix = "/leader"

// findUnitName returns the leader's unit for SERVICE/leader, and any other word unchanged.
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
		return unit, fmt.Errorf("there is no application %q, or none of its units leads now", service)
	}

	return unit, nil
}

// distinct returns the names in their order, each once.
func distinct(names []string) (all []string) {
	for _, name := range names {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
