// Package pulse tells an agent that hangs from one that waits: its loops report
// when they are at work and when they rest.
//
// It ends nothing and knows no service manager. The packages of agent report to
// it, and multicall asks it which loop hangs.
package pulse

import (
	"sync"
	"time"
)

// Watchdog watches all loops of a process. A nil Watchdog notes nothing. Its methods may be
// called from several goroutines.
type Watchdog struct {
	mu   sync.Mutex
	busy map[*Loop]time.Time // since when those are at work that do not rest
}

// New returns a Watchdog without loops.
func New() *Watchdog { return &Watchdog{busy: map[*Loop]time.Time{}} }

// Loop is one loop of the process. A nil Loop notes nothing. A loop that has never turned rests.
type Loop struct {
	pulse *Watchdog
	name  string
}

// Loop adds a loop of that name.
func (p *Watchdog) Loop(name string) *Loop {
	if p == nil {
		return nil
	}
	return &Loop{pulse: p, name: name}
}

// MarkBusy notes that the loop begins another turn, which is work of bounded time.
func (l *Loop) MarkBusy() {
	if l == nil {
		return
	}
	l.pulse.mu.Lock()
	defer l.pulse.mu.Unlock()
	l.pulse.busy[l] = time.Now()
}

// MarkUnbounded notes that the loop waits, for as long as it may take, or has ended.
func (l *Loop) MarkUnbounded() {
	if l == nil {
		return
	}
	l.pulse.mu.Lock()
	defer l.pulse.mu.Unlock()
	delete(l.pulse.busy, l)
}

// HungLoop returns the name of a loop that has been at one turn for longer than the limit, or
// an empty string.
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
