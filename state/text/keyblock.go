package text

import (
	"regexp"
	"strings"
	"sync"
)

// maxKeyLines limits the lines that are hidden after the beginning of a private key, in case the key has no
// end.
const maxKeyLines = 300

// KeyBlock hides private keys that are printed over several lines, where no single line is recognizable as
// part of a key. The zero value is ready to use.
type KeyBlock struct {
	linesLeft int // how many more lines can belong to the current key; 0 outside a key
}

// Hide returns the next line of the text, or Hidden if the line is part of a private key. It does not hide
// the lines with which a key begins and ends, nor lines in between that do not look like a part of a key. If a key
// has no end, Hide stops after maxKeyLines lines.
func (k *KeyBlock) Hide(line string) string {
	begins := keyBlockPatterns().begin.FindAllStringIndex(line, -1)
	if len(begins) > 0 {
		lastBegin := begins[len(begins)-1]
		k.linesLeft = maxKeyLines
		// A key that begins and ends in one line does not continue in the next.
		if strings.Contains(line[lastBegin[1]:], "-----END") {
			k.linesLeft = 0
		}
		return line
	}

	if k.linesLeft == 0 {
		return line
	}
	if strings.Contains(line, "-----END") {
		k.linesLeft = 0
		return line
	}

	k.linesLeft--
	if keyBlockPatterns().body.MatchString(line) {
		return Hidden
	}
	return line
}

// keyBlockPatterns returns the patterns of a key's beginning, and of a line between its beginning and its end.
var keyBlockPatterns = sync.OnceValue(func() (p struct{ begin, body *regexp.Regexp }) {
	p.begin = regexp.MustCompile(`-----BEGIN [A-Z\d ]*PRIVATE KEY(?: BLOCK)?-----`)
	p.body = regexp.MustCompile(`^[ \t>|]*[A-Za-z\d+/]+=*\s*$`)
	return p
})
