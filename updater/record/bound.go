package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A transaction holds 512 operations and 1 MiB, and one that is larger is refused for ever. So no
// record may grow with the number of servers that failed, or with what they said. The full texts
// stay where each server writes them.

// The bounds of what is written about many servers, in bytes of JSON unless they count something.
const (
	// MaxMessage bounds what a server writes of itself.
	MaxMessage = 32 << 10
	// MaxReason bounds what others write about one server.
	MaxReason = 1 << 10
	// MaxText bounds a reason or message that is about many servers.
	MaxText = 8 << 10
	// maxAttempts bounds all attempts of a History but the last.
	maxAttempts = 8 << 10
	// maxFindings bounds the findings of a Degraded.
	maxFindings = 40 << 10
	// MaxBlamed is the number of servers that a record names as being at fault.
	MaxBlamed = 256
	// maxListed is the number of servers that a text names.
	maxListed = 20
)

// Shorten returns the text, or as much of its beginning as takes up to limit bytes in JSON
// together with how many bytes are left out.
func Shorten(text string, limit int) string {
	cost := 0
	for _, r := range text {
		if cost += jsonSize(r); cost > limit {
			return shortenAt(text, limit)
		}
	}

	return text
}

// shortenAt shortens the text to the limit, with words that say how much is left out.
func shortenAt(text string, limit int) string {
	const room = len(" (and 1000000000 bytes more)")
	cost := 0
	for i, r := range text {
		if cost += jsonSize(r); cost > limit-room {
			return fmt.Sprintf("%s (and %d bytes more)", text[:i], len(text)-i)
		}
	}

	return text
}

// jsonSize returns how many bytes encoding/json needs for the rune within a string, at most.
func jsonSize(r rune) int {
	switch {
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError, r == 0x7f:
		return len(`\u0000`)
	case r == '"', r == '\\':
		return 2
	}

	return utf8.RuneLen(r)
}

// Blame returns the servers that a record names as being at fault: the first MaxBlamed.
func Blame(lrns []int) []int {
	return slices.Clip(lrns[:min(len(lrns), MaxBlamed)])
}

// ListSomeServers does what ListServers does, for any number of servers: of more than twenty it lists the
// first ones and counts the others.
func ListSomeServers(lrns []int) string {
	sorted := SortServers(lrns)
	if len(sorted) <= maxListed {
		return ListServers(sorted)
	}

	rest := len(sorted) - maxListed
	words := strings.Split(fmt.Sprint(sorted[:maxListed]), " ")
	return strings.Trim(strings.Join(words, ", "), "[]") + fmt.Sprintf(" and %d more", rest)
}

// Reason says why one server cannot go on, or differs.
type Reason struct {
	Server int
	Where  string // what the server is at; "" is nothing in particular
	Why    string
}

// maxReasons is how many reasons a text has.
const maxReasons = 3

// JoinReasons makes one text of the reasons of many servers. It names each reason once, with all servers
// that share it. The first reasons are complete if they fit into limit bytes of JSON. The others are only
// counted.
func JoinReasons(all []Reason, limit int) string {
	type shared struct {
		Reason
		others []int
	}
	var groups []shared
	index := map[Reason]int{}

	for _, r := range all {
		key := Reason{Where: r.Where, Why: r.Why}
		if i, known := index[key]; known {
			groups[i].others = append(groups[i].others, r.Server)
			continue
		}

		index[key] = len(groups)
		groups = append(groups, shared{Reason: r})
	}

	share := limit / max(1, min(len(groups), maxReasons))
	var words []string
	var left []int

	for i, g := range groups {
		if i >= maxReasons {
			left = append(append(left, g.Server), g.others...)
			continue
		}

		word := fmt.Sprintf("server %d", g.Server)
		if g.Where != "" {
			word += ", " + g.Where
		}
		word = Shorten(word+": "+g.Why, share)
		if len(g.others) > 0 {
			word += "; the same on server " + ListSomeServers(g.others)
		}
		words = append(words, word)
	}

	if len(left) > 0 {
		words = append(
			words,
			fmt.Sprintf("and %d servers more for other reasons, which neco status shows: %s",
				len(SortServers(left)), ListSomeServers(left)),
		)
	}

	return strings.Join(words, "; ")
}

// condense shortens all attempts except the last until they fit, the oldest first. It first shortens their
// reasons. Then it drops whole attempts, and counts them.
func (h *History) condense() {
	last := len(h.Attempts) - 1
	sizes := make([]int, max(0, last))
	sum := 0
	for i := range sizes {
		sizes[i] = encodedSize(h.Attempts[i])
		sum += sizes[i]
	}

	if sum <= maxAttempts {
		return
	}

	attempts := slices.Clone(h.Attempts)
	for i := 0; i < last && sum > maxAttempts; i++ {
		a := &attempts[i]
		a.Why = Shorten(a.Why, maxOldReason)
		a.AtFault = a.AtFault[:min(len(a.AtFault), maxOldBlamed)]
		sum -= sizes[i]
		sizes[i] = encodedSize(*a)
		sum += sizes[i]
	}

	dropped := 0
	for ; sum > maxAttempts; dropped++ {
		sum -= sizes[dropped]
	}
	h.Attempts = attempts[dropped:]
	h.Dropped += dropped
}

// What stays of an attempt of a history that is long.
const (
	maxOldReason = 200
	maxOldBlamed = 16
)

func encodedSize(doc any) int {
	data, err := json.Marshal(doc)
	if err != nil {
		return 0 // such a document cannot be written either
	}
	return len(data)
}

// NewDegraded returns a record of as many findings as it can hold; More counts the others. One finding of
// each component comes first, so that a repair by the record covers all components.
func NewDegraded(found []Finding) Degraded {
	d := Degraded{Findings: []Finding{}}
	size := 0
	first := map[string]bool{}
	kept := make([]bool, len(found))

	keep := func(i int) {
		f := found[i]
		f.Untold = true // whether it was told must not decide which others fit
		if cost := encodedSize(f) + 1; size+cost <= maxFindings {
			size += cost
			kept[i] = true
		}
	}

	for i, f := range found {
		if !first[f.Component] {
			first[f.Component] = true
			keep(i)
		}
	}

	for i := range found {
		if !kept[i] {
			keep(i)
		}
	}

	for i, f := range found {
		if kept[i] {
			d.Findings = append(d.Findings, f)
		}
	}

	d.More = len(found) - len(d.Findings)
	return d
}

// Count returns the number of all findings.
func (d Degraded) Count() int { return len(d.Findings) + d.More }
