package record

import "time"

// Pause keeps updates from starting; one that runs goes on.
type Pause struct {
	Until *time.Time `json:"until,omitempty"` // nil: until resumed
	Why   string     `json:"why,omitempty"`
}

// IsOn reports whether the pause holds at that time.
func (p Pause) IsOn(now time.Time) bool { return p.Until == nil || now.Before(*p.Until) }
