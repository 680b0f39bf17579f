package juju

import "strings"

// resetFlags put values back to their defaults beside those that are set.
type resetFlags struct {
	Reset []string `placeholder:"KEY,..." help:"Reset these to their defaults."`
}

// asks reports whether the call changes nothing.
func (f resetFlags) asks(words []string) bool {
	return len(f.Reset) == 0 && (len(words) == 0 || len(words) == 1 && !strings.Contains(words[0], "="))
}
