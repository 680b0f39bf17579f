package record

import "time"

// Pause keeps updates from starting. A running update continues.
type Pause struct {
	Until *time.Time `json:"until,omitempty"` // nil if the pause lasts until an operator ends it
	Why   string     `json:"why,omitempty"`
}

// IsOn reports whether updates are paused at the time now.
func (p Pause) IsOn(now time.Time) bool { return p.Until == nil || now.Before(*p.Until) }
