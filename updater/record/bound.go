package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A transaction is limited to 512 operations and 1 MiB, and a larger transaction fails at each retry. For
// this reason, the size of a record must not depend on the number of failed servers or the length of their
// messages. Only each server's own record contains its full message.

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

// Shorten makes the text fit into limit bytes of JSON. If the text can need more, Shorten cuts its end and appends
// the number of missing bytes, so that both together fit into the limit.
func Shorten(text string, limit int) string {
	cost := 0
	for _, r := range text {
		cost += jsonSize(r)
		if cost > limit {
			return shortenAt(text, limit)
		}
	}

	return text
}

// shortenAt cuts the text and appends the number of missing bytes, so that both together fit into the limit. The
// limit must be at least suffixSize.
func shortenAt(text string, limit int) string {
	const suffixSize = len(" (and 1000000000 bytes more)") // the space for the longest suffix
	cost := 0
	for i, r := range text {
		cost += jsonSize(r)
		if cost > limit-suffixSize {
			return fmt.Sprintf("%s (and %d bytes more)", text[:i], len(text)-i)
		}
	}

	return text
}

// jsonSize returns the maximum number of bytes that encoding/json needs for the rune in a string.
func jsonSize(r rune) int {
	switch {
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError, r == 0x7f:
		// These runes can need an escape with four hexadecimal digits.
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

	var words []string
	for _, lrn := range sorted[:maxListed] {
		words = append(words, strconv.Itoa(lrn))
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words, ", "), len(sorted)-maxListed)
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

// sharedReason is a reason that several servers have in common.
type sharedReason struct {
	Reason
	others []int // the servers with the same reason, in addition to Reason.Server
}

// groupReasons joins the reasons that differ only in their server. It orders the groups by their first reasons.
func groupReasons(reasons []Reason) (groups []sharedReason) {
	index := map[Reason]int{} // the index in groups, by the reason without its server
	for _, r := range reasons {
		key := Reason{Where: r.Where, Why: r.Why}
		if i, isKnown := index[key]; isKnown {
			groups[i].others = append(groups[i].others, r.Server)
			continue
		}

		index[key] = len(groups)
		groups = append(groups, sharedReason{Reason: r})
	}

	return groups
}

// JoinReasons returns one text with the reasons of many servers. The text contains the first maxReasons different
// reasons, each once and with the first server that has it. It shortens each to an equal share of limit, in bytes of
// JSON. After each reason, it lists the other servers that have it. For all remaining reasons, it lists only the
// servers. It lists servers as [ListSomeServers] does, and limit does not include these lists.
func JoinReasons(reasons []Reason, limit int) string {
	groups := groupReasons(reasons)
	limitOfEach := limit / max(1, min(len(groups), maxReasons))
	var parts []string
	var unexplained []int // the servers whose reasons are left out

	for i, g := range groups {
		if i >= maxReasons {
			unexplained = append(append(unexplained, g.Server), g.others...)
			continue
		}

		part := fmt.Sprintf("server %d", g.Server)
		if g.Where != "" {
			part += ", " + g.Where
		}
		part = Shorten(part+": "+g.Why, limitOfEach)
		if len(g.others) > 0 {
			part += "; the same on server " + ListSomeServers(g.others)
		}
		parts = append(parts, part)
	}

	if len(unexplained) > 0 {
		parts = append(parts, fmt.Sprintf("and %d more servers for other reasons, which neco status shows: %s",
			len(SortServers(unexplained)), ListSomeServers(unexplained)))
	}

	return strings.Join(parts, "; ")
}

// condense makes all attempts except the last fit into maxAttempts bytes. It first shortens the reasons and the
// lists of servers at fault, in the oldest attempts first. If that is not enough, it drops the oldest attempts, and
// adds their number to Dropped.
func (h *History) condense() {
	last := len(h.Attempts) - 1
	sizes := make([]int, max(0, last)) // the encoded size of each attempt except the last
	sum := 0
	for i := range sizes {
		sizes[i] = encodedSize(h.Attempts[i])
		sum += sizes[i]
	}
	if sum <= maxAttempts {
		return
	}

	// Copies of the History share the slice, so it is not changed in place.
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

// encodedSize returns the number of bytes of the document in JSON, or 0 if it cannot be encoded.
func encodedSize(doc any) int {
	data, err := json.Marshal(doc)
	if err != nil {
		// A document that cannot be encoded can never be written.
		return 0
	}
	return len(data)
}

// NewDegraded returns a record with the findings that fit, in their order. More counts the remaining findings. The
// first finding of each component takes precedence. If these fit, a repair of the recorded findings covers all
// components.
func NewDegraded(found []Finding) Degraded {
	d := Degraded{Findings: []Finding{}}
	size := 0
	kept := make([]bool, len(found)) // whether the record has room for each finding

	keepIfFits := func(i int) {
		f := found[i]
		// The size is measured as if the finding had not been reported yet, so that a report never changes
		// which findings fit.
		f.Untold = true
		cost := encodedSize(f) + len(",")
		if size+cost <= maxFindings {
			size += cost
			kept[i] = true
		}
	}

	isCovered := map[string]bool{} // the components of which the first finding was considered
	for i, f := range found {
		if !isCovered[f.Component] {
			isCovered[f.Component] = true
			keepIfFits(i)
		}
	}

	for i := range found {
		if !kept[i] {
			keepIfFits(i)
		}
	}

	// The findings keep their order.
	for i, f := range found {
		if kept[i] {
			d.Findings = append(d.Findings, f)
		}
	}

	d.More = len(found) - len(d.Findings)
	return d
}

// Count returns the number of all findings, with those that did not fit.
func (d Degraded) Count() int { return len(d.Findings) + d.More }
