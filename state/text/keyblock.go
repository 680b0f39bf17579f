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
	left int // how many more lines can belong to the current key; 0 outside a key
}

// Hide returns the next line, or Hidden if it is part of a private key.
func (k *KeyBlock) Hide(line string) string {
	begins := keyBlockPatterns().begin.FindAllStringIndex(line, -1)
	switch {
	case len(begins) > 0:
		k.left = maxKeyLines
		if last := begins[len(begins)-1]; strings.Contains(line[last[1]:], "-----END") {
			k.left = 0
		}
		return line
	case k.left == 0:
		return line
	case strings.Contains(line, "-----END"):
		k.left = 0
		return line
	}

	k.left--
	if keyBlockPatterns().body.MatchString(line) {
		return Hidden
	}
	return line
}

var keyBlockPatterns = sync.OnceValue(func() (p struct{ begin, body *regexp.Regexp }) {
	p.begin = regexp.MustCompile(`-----BEGIN [A-Z\d ]*PRIVATE KEY(?: BLOCK)?-----`)
	p.body = regexp.MustCompile(`^[ \t>|]*[A-Za-z\d+/]+=*\s*$`)
	return p
})
