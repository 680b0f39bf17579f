package uniter

import (
	"cmp"
	"slices"
	"sync"
)

// HookLimiter limits how many hooks run at a time on one machine. Units get slots in the order of their
// requests. If there are several slots, one is reserved for the unit with the most queued hooks. Hooks of one
// unit run one after the other, so that unit would otherwise finish last. Several goroutines can use a
// HookLimiter at once.
type HookLimiter struct {
	mu        sync.Mutex
	limit     int
	inUse     int
	queue     []*ticket
	preferred *ticket       // holds the slot for the unit with the most queued hooks
	drained   chan struct{} // created by Drain, which stops grants; closed once no slot is in use
}

// ticket is a unit's request for a slot.
type ticket struct {
	granted chan struct{} // closed once the ticket holds a slot
	owed    int           // hooks in the unit's queue at its last request; guarded by HookLimiter.mu
}

// NewHookLimiter returns a limiter with size slots.
func NewHookLimiter(size int) *HookLimiter { return &HookLimiter{limit: size} }

// Resize changes the number of slots. It does not affect running hooks. If there are fewer slots than before,
// surplus slots disappear as their hooks end.
func (l *HookLimiter) Resize(size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = size
	l.grantFree()
}

// Drain stops granting slots, and returns a channel that is closed once no slot is in use.
func (l *HookLimiter) Drain() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.drained == nil {
		l.drained = make(chan struct{})
		l.closeIfDrained()
	}

	return l.drained
}

// closeIfDrained closes the channel of Drain if no slot is in use. The caller holds l.mu.
func (l *HookLimiter) closeIfDrained() {
	if l.drained != nil && l.inUse == 0 {
		close(l.drained)
	}
}

// request records that the unit's queue holds owed hooks, and grants free slots. It returns the unit's ticket,
// a new one if t is nil. The caller must release the ticket, granted or not.
func (l *HookLimiter) request(t *ticket, owed int) *ticket {
	l.mu.Lock()
	defer l.mu.Unlock()

	if t == nil {
		t = &ticket{granted: make(chan struct{})}
		l.queue = append(l.queue, t)
	}

	t.owed = owed
	l.grantFree()
	return t
}

// maxHooksInTurn is how many hooks a unit can run with one ticket while other units wait. It is 2, so that a
// relation-changed hook can directly follow its relation-joined hook.
const maxHooksInTurn = 2

// maxPreferredTurn limits the hooks of the preferred ticket while other units wait. Without this limit they
// could wait for hours, if long hooks hold all other slots.
const maxPreferredTurn = 20

// mayContinue reports whether a unit can keep its slot for a further hook, after it has run the given number
// of hooks with its ticket.
func (l *HookLimiter) mayContinue(t *ticket, hooks int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drained != nil || l.inUse > l.limit {
		return false
	}

	if hooks < maxHooksInTurn || len(l.queue) == 0 {
		return true
	}
	if l.limit <= 1 || l.preferred != t || hooks >= maxPreferredTurn {
		return false
	}

	// The preferred unit continues as long as no waiting unit has more queued hooks.
	remaining := t.owed - hooks
	return !slices.ContainsFunc(l.queue, func(other *ticket) bool { return other.owed > remaining })
}

// release removes a waiting ticket from the queue. If the ticket was granted, it frees the ticket's slot and
// grants the slot to a waiting ticket.
func (l *HookLimiter) release(t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, t); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return
	}

	l.inUse--
	if l.preferred == t {
		l.preferred = nil
	}
	l.closeIfDrained()
	l.grantFree()
}

// grantFree grants free slots to waiting tickets. The caller holds l.mu.
func (l *HookLimiter) grantFree() {
	for l.drained == nil && l.inUse < l.limit && len(l.queue) > 0 {
		next := l.queue[0]
		if l.limit > 1 && l.preferred == nil {
			// If several units have the most queued hooks, MaxFunc returns the first of them.
			next = slices.MaxFunc(l.queue, func(a, b *ticket) int { return cmp.Compare(a.owed, b.owed) })
			l.preferred = next
		}

		i := slices.Index(l.queue, next)
		l.queue = slices.Delete(l.queue, i, i+1)
		close(next.granted)
		l.inUse++
	}
}

func (t *ticket) isGranted() bool { return isClosed(t.granted) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
