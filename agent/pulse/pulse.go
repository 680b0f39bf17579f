// Package pulse tells an agent that hangs from one that waits: its loops say
// when they are at work and when they rest.
//
// It ends nothing and knows no service manager. The packages of agent have it
// noted, and multicall asks it.
package pulse

import (
	"sync"
	"time"
)

// Pulse is that of all loops of a process. A nil Pulse notes nothing. Its methods
// may be called from several goroutines.
type Pulse struct {
	mu   sync.Mutex
	busy map[*Loop]time.Time // since when those are at work that do not rest
}

// New makes one without loops.
func New() *Pulse { return &Pulse{busy: map[*Loop]time.Time{}} }

// Loop is one loop of the process. A nil Loop notes nothing. A loop that has never
// turned rests.
type Loop struct {
	pulse *Pulse
	name  string
}

// Loop makes a loop of that name.
func (p *Pulse) Loop(name string) *Loop {
	if p == nil {
		return nil
	}
	return &Loop{pulse: p, name: name}
}

// Turn says that the loop begins another turn, which is work of bounded time.
func (l *Loop) Turn() {
	if l == nil {
		return
	}
	l.pulse.mu.Lock()
	defer l.pulse.mu.Unlock()
	l.pulse.busy[l] = time.Now()
}

// Rest says that the loop waits, for as long as it may take, or has ended.
func (l *Loop) Rest() {
	if l == nil {
		return
	}
	l.pulse.mu.Lock()
	defer l.pulse.mu.Unlock()
	delete(l.pulse.busy, l)
}

// Hung names a loop that has been at one turn for longer than the limit; "" if
// none has.
func (p *Pulse) Hung(limit time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l, since := range p.busy {
		if time.Since(since) > limit {
			return l.name
		}
	}
	return ""
}
