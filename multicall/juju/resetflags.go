package juju

import "strings"

// resetFlags are the flags of commands that can both set values and reset them to their defaults.
type resetFlags struct {
	Reset []string `placeholder:"KEY,..." help:"Reset each KEY to its default."`
}

// asks reports whether the call only prints values: without --reset, and with no word or a single KEY. A word
// KEY=VALUE sets a value.
func (f resetFlags) asks(words []string) bool {
	if len(f.Reset) > 0 {
		return false
	}
	return len(words) == 0 || len(words) == 1 && !strings.Contains(words[0], "=")
}
