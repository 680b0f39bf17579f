// Package pulse distinguishes an agent that hangs from one that waits. The agent's loops report when they begin
// bounded work, and when they wait.
//
// It does not end a process that hangs, and it does not communicate with a service manager.
package pulse

import (
	"sync"
	"time"
)

// Watchdog watches all loops of a process. The Loop method of a nil Watchdog returns a nil Loop. Several
// goroutines can use a Watchdog at once.
type Watchdog struct {
	mu   sync.Mutex
	busy map[*Loop]time.Time // when each busy loop began its turn
}

// New returns a Watchdog without loops.
func New() *Watchdog { return &Watchdog{busy: map[*Loop]time.Time{}} }

// Loop is one loop of the process. A new Loop waits until its first MarkBusy. A nil Loop does nothing.
type Loop struct {
	pulse *Watchdog
	name  string
}

// Loop returns a new loop of the process.
func (p *Watchdog) Loop(name string) *Loop {
	if p == nil {
		return nil
	}
	return &Loop{pulse: p, name: name}
}

// MarkBusy records that the loop begins a turn, whose work must end within a bounded time.
func (l *Loop) MarkBusy() {
	if l == nil {
		return
	}
	l.pulse.mu.Lock()
	defer l.pulse.mu.Unlock()
	l.pulse.busy[l] = time.Now()
}

// MarkUnbounded records that the loop has ended, or begins to wait for an unbounded time.
func (l *Loop) MarkUnbounded() {
	if l == nil {
		return
	}
	l.pulse.mu.Lock()
	defer l.pulse.mu.Unlock()
	delete(l.pulse.busy, l)
}

// HungLoop returns the name of a loop whose current turn has taken longer than the limit. It returns an empty
// string if no loop hangs.
func (p *Watchdog) HungLoop(limit time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()

	for l, since := range p.busy {
		if time.Since(since) > limit {
			return l.name
		}
	}

	return ""
}
