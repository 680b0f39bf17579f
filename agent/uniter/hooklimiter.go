package uniter

import (
	"cmp"
	"slices"
	"sync"
)

// HookLimiter limits how many hooks run at a time on one machine, first come, first served. Of several
// slots one goes to the unit that owes most hooks: its own run one after the other, and would be the
// last to be done if they waited for those of all others, too. Its methods may be called from several goroutines.
type HookLimiter struct {
	mu        sync.Mutex
	limit     int
	inUse     int
	queue     []*ticket
	preferred *ticket       // has the slot of the unit that owes most
	drained   chan struct{} // not nil: no slot is granted any more; closed once none is in use
}

// ticket is a request for a slot.
type ticket struct {
	granted chan struct{} // closed once it is
	owed    int           // hooks in the unit's queue when it asked last; of the limiter's mu
}

// NewHookLimiter returns a limiter with that many slots.
func NewHookLimiter(size int) *HookLimiter { return &HookLimiter{limit: size} }

// Resize changes the number of slots. Hooks that run are left alone: where there are fewer
// slots now, they become free as hooks end.
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

// closeIfDrained closes the channel of Drain if no hook is in flight. The caller holds l.mu.
func (l *HookLimiter) closeIfDrained() {
	if l.drained != nil && l.inUse == 0 {
		close(l.drained)
	}
}

// request notes how many hooks the unit's queue holds. It returns the unit's ticket, a new one if t is nil.
// The caller must release the ticket, granted or not.
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

// maxHooksInTurn hooks of one unit run one after the other while others wait: the changed with
// the joined that it follows.
const maxHooksInTurn = 2

// maxPreferredTurn is for who owes most: the other places may be taken by what goes on for hours.
const maxPreferredTurn = 20

// mayContinue reports whether a unit may keep its slot for another hook, after it has run that many.
func (l *HookLimiter) mayContinue(t *ticket, hooks int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drained != nil || l.inUse > l.limit {
		return false
	}

	owesMore := func(other *ticket) bool { return other.owed > t.owed-hooks }
	isPreferred := l.limit > 1 && l.preferred == t && hooks < maxPreferredTurn &&
		!slices.ContainsFunc(l.queue, owesMore)
	return hooks < maxHooksInTurn || len(l.queue) == 0 || isPreferred
}

// release ends a ticket, or takes it out of the queue, and admits the next one.
func (l *HookLimiter) release(t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, t); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return
	}

	if l.inUse--; l.preferred == t {
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
			// The first of equals.
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
