package text

import (
	"regexp"
	"strings"
	"sync"
)

// maxKeyLines is how many lines a private key has at most, so that one whose end does not
// come hides no more than that.
const maxKeyLines = 300

// KeyBlock hides private keys in lines that come one after another, as a program prints
// them: no single one of these tells that it is of a key. The zero value is ready.
type KeyBlock struct {
	left int // how many lines of a key may still come; 0: none is open
}

// Hide returns the line, or Hidden for one that is part of a private key.
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
