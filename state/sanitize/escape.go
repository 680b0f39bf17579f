// Package sanitize makes text that came from charms and settings fit to be shown and
// logged: control characters are escaped, secrets are hidden.
//
// It is pure and imports nothing of bijou. Whoever prints or logs imports it.
package sanitize

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Escape returns the text with control characters written as in Go, those that break
// lines and those that change the direction of what follows among them. Tabs stay.
func Escape(text string) string {
	return escape(text, func(r rune) string { return strings.Trim(strconv.QuoteRuneToASCII(r), "'") })
}

// EscapeJSON returns JSON whose strings have no such character as it is; they stand for
// the same as before.
func EscapeJSON(json string) string {
	return escape(json, func(r rune) string { return fmt.Sprintf(`\u%04x`, r) })
}

func escape(text string, write func(rune) string) string {
	if strings.IndexFunc(text, isHarmful) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isHarmful(r) {
			b.WriteString(write(r))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isHarmful reports whether a terminal may obey the character instead of showing it.
func isHarmful(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029' || // line and paragraph separators
		'\u202a' <= r && r <= '\u202e' || '\u2066' <= r && r <= '\u2069'
}
