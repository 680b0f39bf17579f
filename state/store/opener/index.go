package opener

import (
	"slices"
	"strings"

	"bijou/state/store"
)

// MinimalPrefixes returns those of the prefixes that no other covers, sorted.
func MinimalPrefixes(prefixes []string) []string {
	var out []string
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if len(out) == 0 || !strings.HasPrefix(p, out[len(out)-1]) {
			out = append(out, p)
		}
	}
	return out
}

// WatcherIndex finds the watchers that a commit concerns, by their prefixes. It has no
// lock of its own.
type WatcherIndex[W comparable] map[string]map[W]bool

// Add adds a watcher, whose prefixes are minimal.
func (x WatcherIndex[W]) Add(w W, prefixes []string) {
	for _, p := range prefixes {
		if x[p] == nil {
			x[p] = map[W]bool{}
		}
		x[p][w] = true
	}
}

// Remove removes a watcher, and returns the prefixes of which it was the last. It is
// idempotent.
func (x WatcherIndex[W]) Remove(w W, prefixes []string) (idle []string) {
	for _, p := range prefixes {
		if !x[p][w] {
			continue
		}
		delete(x[p], w)
		if len(x[p]) == 0 {
			delete(x, p)
			idle = append(idle, p)
		}
	}
	return idle
}

// SplitBatch returns for each watcher the events that concern it. It costs a look-up for
// each byte of a key, however many watchers there are.
func (x WatcherIndex[W]) SplitBatch(b store.Batch) map[W]store.Batch {
	parts := map[W]store.Batch{}
	for _, e := range b.Events {
		for n := range len(e.Key) + 1 {
			for w := range x[e.Key[:n]] {
				parts[w] = store.Batch{Revision: b.Revision, Events: append(parts[w].Events, e)}
			}
		}
	}
	return parts
}
