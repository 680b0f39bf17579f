package state

import "unicode/utf8"

// truncate cuts a text to at most n bytes, between two characters.
func truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// maxMessageBytes bounds what is kept of a provider's, charm's or agent's message: many
// of them have to fit in one transaction.
const maxMessageBytes = 4 << 10
