package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxLRN is the greatest logical rack number.
const MaxLRN = 999_999

// ParseLRN reads a boot server's logical rack number: a decimal number from 0 to
// MaxLRN, without sign or leading zeros, so that each server has one key.
func ParseLRN(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > MaxLRN || strconv.Itoa(n) != s {
		return 0, fmt.Errorf("cannot take %q for a boot server: an LRN is a number from 0 to %d", s, MaxLRN)
	}
	return n, nil
}

// ParseServerKey returns the boot server that the key names right below the prefix, and
// false if it names none.
func ParseServerKey(prefix, key string) (lrn int, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return 0, false
	}
	lrn, err := ParseLRN(rest)
	return lrn, err == nil
}

// SortServers returns the servers in numeric order, each once.
func SortServers(lrns []int) []int {
	sorted := slices.Clone(lrns)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// ListServers writes servers as operators read them: "1, 2 and 10".
func ListServers(lrns []int) string {
	var words []string
	for _, n := range SortServers(lrns) {
		words = append(words, strconv.Itoa(n))
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
