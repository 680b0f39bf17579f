package uniter

import (
	"slices"
	"sync"
)

// Slots are how many hooks may run at a time on one machine. Who asks first is
// first. Their methods may be called from several goroutines.
type Slots struct {
	mu      sync.Mutex
	size    int
	taken   int
	waiting []turn
	empty   chan struct{} // not nil: no slot is handed out any more; closed once none is taken
}

// turn is a slot that was asked for: closed once it is there.
type turn chan struct{}

// NewSlots makes so many.
func NewSlots(size int) *Slots { return &Slots{size: size} }

// Resize makes them so many from now on. Hooks that run are left alone: fewer
// slots come to be as they end.
func (s *Slots) Resize(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = size
	s.grant()
}

// Drain hands out no slot any more. What it returns is closed once none is taken.
func (s *Slots) Drain() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.empty == nil {
		s.empty = make(chan struct{})
		s.sayEmpty()
	}
	return s.empty
}

// sayEmpty says so if the slots are drained. s.mu is held.
func (s *Slots) sayEmpty() {
	if s.empty != nil && s.taken == 0 {
		close(s.empty)
	}
}

// ask asks for a slot, which is given back whether it was granted or not.
func (s *Slots) ask() turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := make(turn)
	s.waiting = append(s.waiting, t)
	s.grant()
	return t
}

// giveBack ends a turn.
func (s *Slots) giveBack(t turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, t); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
		return
	}
	s.taken--
	s.sayEmpty()
	s.grant()
}

// grant hands out what is free. s.mu is held.
func (s *Slots) grant() {
	for s.empty == nil && s.taken < s.size && len(s.waiting) > 0 {
		close(s.waiting[0])
		s.waiting = s.waiting[1:]
		s.taken++
	}
}

// granted is true once the slot is there.
func (t turn) granted() bool {
	select {
	case <-t:
		return true
	default:
		return false
	}
}
