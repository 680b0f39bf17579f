package uniter

import (
	"slices"
	"sync"
)

// HookLimiter limits how many hooks run at a time on one machine, first come, first served.
// Its methods may be called from several goroutines.
type HookLimiter struct {
	mu      sync.Mutex
	limit   int
	inUse   int
	queue   []ticket
	drained chan struct{} // not nil: no slot is granted any more; closed once none is in use
}

// ticket is a request for a slot, closed once it is granted.
type ticket chan struct{}

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

// Drain grants no slot any more, and returns a channel that is closed once none is in use.
func (l *HookLimiter) Drain() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drained == nil {
		l.drained = make(chan struct{})
		l.closeIfDrained()
	}
	return l.drained
}

// closeIfDrained is called with l.mu held.
func (l *HookLimiter) closeIfDrained() {
	if l.drained != nil && l.inUse == 0 {
		close(l.drained)
	}
}

// request returns a ticket that must be released, granted or not.
func (l *HookLimiter) request() ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := make(ticket)
	l.queue = append(l.queue, t)
	l.grantFree()
	return t
}

// maxHooksInTurn hooks of one unit run one after the other while others wait: the changed with
// the joined that it follows.
const maxHooksInTurn = 2

// mayContinue reports whether who has a slot may keep it for another hook, after that many.
func (l *HookLimiter) mayContinue(hooks int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drained == nil && l.inUse <= l.limit && (hooks < maxHooksInTurn || len(l.queue) == 0)
}

func (l *HookLimiter) release(t ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.queue, t); i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		return
	}
	l.inUse--
	l.closeIfDrained()
	l.grantFree()
}

// grantFree is called with l.mu held.
func (l *HookLimiter) grantFree() {
	for l.drained == nil && l.inUse < l.limit && len(l.queue) > 0 {
		close(l.queue[0])
		l.queue = l.queue[1:]
		l.inUse++
	}
}

func (t ticket) isGranted() bool { return isClosed(t) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
