// Package pulse distinguishes an agent that hangs from one that waits. The agent's loops report when they begin
// bounded work, and when they wait.
//
// It does not end a process that hangs, and it does not communicate with a service manager.
package pulse

import (
	"sync"
	"time"
)

// Watchdog watches all loops of a process. If the Watchdog is nil, its Loop method returns a nil Loop. Several
// goroutines can use a Watchdog at once.
type Watchdog struct {
	mu   sync.Mutex
	busy map[*Loop]time.Time // when each busy loop began its turn
}

// New returns a Watchdog without loops.
func New() *Watchdog { return &Watchdog{busy: map[*Loop]time.Time{}} }

// Loop is one loop of the process. A new Loop counts as waiting until its first MarkBusy. The methods of a nil
// Loop do nothing.
type Loop struct {
	watchdog *Watchdog
	name     string
}

// Loop returns a new loop of the process.
func (w *Watchdog) Loop(name string) *Loop {
	if w == nil {
		return nil
	}
	return &Loop{watchdog: w, name: name}
}

// MarkBusy records that the loop begins a turn, whose work must end within a bounded time.
func (l *Loop) MarkBusy() {
	if l == nil {
		return
	}
	l.watchdog.mu.Lock()
	defer l.watchdog.mu.Unlock()
	l.watchdog.busy[l] = time.Now()
}

// MarkUnbounded records that the loop has ended, or begins to wait for an unbounded time.
func (l *Loop) MarkUnbounded() {
	if l == nil {
		return
	}
	l.watchdog.mu.Lock()
	defer l.watchdog.mu.Unlock()
	delete(l.watchdog.busy, l)
}

// HungLoop returns the name of a loop whose current turn has taken longer than the limit. It returns an empty
// string if no loop hangs.
func (w *Watchdog) HungLoop(limit time.Duration) string {
	w.mu.Lock()
	defer w.mu.Unlock()

	for l, since := range w.busy {
		if time.Since(since) > limit {
			return l.name
		}
	}

	return ""
}
