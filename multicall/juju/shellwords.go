package juju

import (
	"regexp"
	"strings"
)

// quoteShellWords returns the words as one command line for a shell. It quotes only words that need it.
func quoteShellWords(words []string) string {
	plain := regexp.MustCompile(`^[\w./:=,@%+-]+$`)
	var quoted []string
	for _, word := range words {
		if !plain.MatchString(word) {
			word = QuoteShellWord(word)
		}
		quoted = append(quoted, word)
	}

	return strings.Join(quoted, " ")
}

// QuoteShellWord returns a word in quotes for a shell.
func QuoteShellWord(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
