package uniter

import (
	"cmp"
	"slices"
	"sync"
)

// HookLimiter limits how many hooks run at a time on one machine. Each running hook needs a slot. Units get
// slots in the order of their requests. If there are several slots, one of them goes to the unit with the
// most queued hooks: the hooks of one unit run one after the other, so this unit would otherwise finish last.
// Several goroutines can use a HookLimiter at once.
type HookLimiter struct {
	mu        sync.Mutex
	limit     int           // the number of slots
	inUse     int           // the number of slots that tickets hold
	queue     []*ticket     // the tickets that wait for a slot
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

// request records how many hooks the unit's queue holds (owed), and grants free slots to waiting tickets. It
// returns t, or a new ticket if t is nil. The caller must release the ticket, even if it was not granted.
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

// maxPreferredTurn is how many hooks the preferred unit can run with one ticket while other units wait. Without
// this limit the other units could wait for hours, if long hooks hold all other slots.
const maxPreferredTurn = 20

// mayContinue reports whether a unit can keep its slot for another hook, after it has run the given number of
// hooks with its ticket.
func (l *HookLimiter) mayContinue(t *ticket, hooks int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	isDraining := l.drained != nil // Drain has stopped all grants
	isSurplus := l.inUse > l.limit // Resize has removed slots
	if isDraining || isSurplus {
		return false
	}

	if hooks < maxHooksInTurn || len(l.queue) == 0 {
		return true
	}
	isPreferred := l.limit > 1 && l.preferred == t // no unit is preferred if there is a single slot
	if !isPreferred || hooks >= maxPreferredTurn {
		return false
	}

	// The preferred unit continues as long as no waiting unit has more queued hooks.
	remaining := t.owed - hooks
	return !slices.ContainsFunc(l.queue, func(other *ticket) bool { return other.owed > remaining })
}

// release ends a ticket. If the ticket is waiting, release removes the ticket from the queue. If the ticket was
// granted, release frees its slot and grants free slots to waiting tickets.
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

// grantFree grants free slots to waiting tickets, unless Drain was called. The caller holds l.mu.
func (l *HookLimiter) grantFree() {
	for l.drained == nil && l.inUse < l.limit && len(l.queue) > 0 {
		next := l.queue[0]
		if l.limit > 1 && l.preferred == nil {
			// Prefer the unit with the most queued hooks. If there are several such units, MaxFunc returns the
			// first of them.
			next = slices.MaxFunc(l.queue, func(a, b *ticket) int { return cmp.Compare(a.owed, b.owed) })
			l.preferred = next
		}

		i := slices.Index(l.queue, next)
		l.queue = slices.Delete(l.queue, i, i+1)
		close(next.granted)
		l.inUse++
	}
}

// isGranted reports whether the ticket holds a slot.
func (t *ticket) isGranted() bool { return isClosed(t.granted) }

// isClosed reports whether the channel is closed. No value is ever sent on the channel.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
