// Package lazyregexp compiles regular expressions when they are first used: most of them
// are not, by a command that is over within milliseconds. It is a leaf: everybody may
// import it.
package lazyregexp

import (
	"regexp"
	"sync"
)

// Regexp is a regular expression that may not be compiled yet. It is safe for concurrent use.
type Regexp struct{ compiled func() *regexp.Regexp }

// New returns the expression, which panics when it is first used if it cannot be parsed.
func New(expr string) Regexp {
	return Regexp{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// MatchString reports whether s contains a match.
func (r Regexp) MatchString(s string) bool { return r.compiled().MatchString(s) }

// Compiled returns the expression, for what else can be done with it.
func (r Regexp) Compiled() *regexp.Regexp { return r.compiled() }
