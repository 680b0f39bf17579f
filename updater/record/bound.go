package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// A transaction is limited to 512 operations and 1 MiB, and a larger transaction fails at each retry. So
// records must not grow with the number of failed servers or the length of their messages. The full messages
// are only in each server's own record.

// The limits of records about many servers, in bytes of JSON unless stated otherwise.
const (
	// MaxMessage limits a server's message about itself.
	MaxMessage = 32 << 10
	// MaxReason limits a text by other processes about one server.
	MaxReason = 1 << 10
	// MaxText limits a reason or message about many servers.
	MaxText = 8 << 10
	// maxAttempts limits all attempts of a History except the last.
	maxAttempts = 8 << 10
	// maxFindings limits the findings of a Degraded.
	maxFindings = 40 << 10
	// MaxBlamed is the maximum number of servers at fault that a record names.
	MaxBlamed = 256
	// maxListed is the maximum number of servers that a text lists.
	maxListed = 20
)

// Shorten returns the text if it needs at most limit bytes in JSON. Otherwise it cuts the text to that limit
// and appends the number of missing bytes.
func Shorten(text string, limit int) string {
	cost := 0
	for _, r := range text {
		if cost += jsonSize(r); cost > limit {
			return shortenAt(text, limit)
		}
	}

	return text
}

// shortenAt cuts the text to the limit and appends the number of missing bytes.
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

// jsonSize returns the maximum number of bytes that encoding/json needs for the rune in a string.
func jsonSize(r rune) int {
	switch {
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError, r == 0x7f:
		return len(`\u0000`)
	case r == '"', r == '\\':
		return 2
	}

	return utf8.RuneLen(r)
}

// Blame returns the servers at fault that a record names: the first MaxBlamed.
func Blame(lrns []int) []int {
	return slices.Clip(lrns[:min(len(lrns), MaxBlamed)])
}

// ListSomeServers lists the servers as [ListServers] does. If there are more than maxListed, it lists the
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

// Reason explains why one server has failed or differs.
type Reason struct {
	Server int
	// Where is the step or component, or "" if the reason concerns the server as a whole.
	Where string
	Why   string
}

// maxReasons is the maximum number of reasons that a text contains in full.
const maxReasons = 3

// JoinReasons returns one text with the reasons of many servers. It contains each reason once, with all
// servers that share it. The first maxReasons reasons together use up to limit bytes of JSON. For the other
// reasons it lists only the servers.
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
			fmt.Sprintf("and %d more servers for other reasons, which neco status shows: %s",
				len(SortServers(left)), ListSomeServers(left)),
		)
	}

	return strings.Join(words, "; ")
}

// condense shortens the attempts, the oldest first, until all of them except the last fit into maxAttempts.
// It first shortens their reasons. If that is not enough, it drops whole attempts and counts them.
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

// The limits of an old attempt in a long history.
const (
	maxOldReason = 200
	maxOldBlamed = 16
)

func encodedSize(doc any) int {
	data, err := json.Marshal(doc)
	if err != nil {
		// A document that cannot be encoded can never be written.
		return 0
	}
	return len(data)
}

// NewDegraded returns a record with as many findings as fit. More counts the remaining findings. One finding
// of each component comes first, so that a repair of the recorded findings covers all components.
func NewDegraded(found []Finding) Degraded {
	d := Degraded{Findings: []Finding{}}
	size := 0
	first := map[string]bool{}
	kept := make([]bool, len(found))

	keep := func(i int) {
		f := found[i]
		// The size is measured as if the finding had not been reported yet, so that a report never changes
		// which findings fit.
		f.Untold = true
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
