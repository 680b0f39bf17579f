package record

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Gate is how far the leader has let the workers of a request go, in status/gate. It
// is a shortcut: the servers' own records decide. It is not in the request, since
// all workers hear of each gate, and the request grows with their number.
type Gate struct {
	Request   int       `json:"request"`
	StartedAt time.Time `json:"started-at"` // the request's
	Attempt   int       `json:"attempt"`    // in which it was opened
	Step      int       `json:"step"`       // to which all servers have come
	StepName  string    `json:"step-name,omitempty"`
	Plan      string    `json:"plan,omitempty"` // the digest of the plan that has that step
	At        time.Time `json:"at"`             // when, or when something has moved after that, by the leader's clock
	// Slow is set once the alert was sent that nothing moves at this step.
	Slow bool `json:"slow,omitempty"`
	// Waited is for how many seconds nothing had moved when a leader wrote that last, since
	// the next one's clock may be another: docs/reference/stall-detection.md.
	Waited int `json:"waited,omitempty"`
	// Progress is the request's when the leader wrote this: if that has grown since, At and
	// Waited are about what was before. Binaries of before do not write it.
	Progress int `json:"progress,omitempty"`
}

// Identity tells one gate from the next: for each step another one is opened.
func (g Gate) Identity() any {
	return [4]int64{int64(g.Request), g.StartedAt.UnixNano(), int64(g.Attempt), int64(g.Step)}
}

// IsAbout reports whether the gate was written in that attempt at the request.
func (g Gate) IsAbout(r Request) bool {
	return g.Request == r.ID && g.StartedAt.Equal(r.StartedAt) && g.Attempt == r.Attempt
}

// OpenStep returns the step up to which the gate is open for the request; 0 is none.
func (g Gate) OpenStep(r Request) int {
	if g.Request != r.ID || !g.StartedAt.Equal(r.StartedAt) {
		return 0
	}
	return g.Step
}

// IsProven reports whether all workers of the request have come up with its version, as
// its gate shows. Without a request somebody else has replaced the program, unless a
// request was just recovered, perhaps because of that version.
func IsProven(r *Request, g Gate, recovery *Recovery) bool {
	if r == nil {
		return recovery == nil
	}
	return r.Succeeded() || g.OpenStep(*r) > 0
}

// Pause keeps updates from starting; one that runs goes on.
type Pause struct {
	Until *time.Time `json:"until,omitempty"` // nil: until resumed
	Why   string     `json:"why,omitempty"`
}

// IsOn reports whether the pause holds at that time.
func (p Pause) IsOn(now time.Time) bool { return p.Until == nil || now.Before(*p.Until) }

// Window is when updates may start: for some time from each of the moments of a cron schedule.
type Window struct {
	starts cron.Schedule
	length time.Duration
	zone   *time.Location
}

// maxWindow bounds how long a window is open.
const maxWindow = 7 * 24 * time.Hour

// ParseWindow reads "CRON; DURATION; TIMEZONE", as in "0 2 * * 1-5; 3h; Asia/Tokyo".
// CRON has five fields: minute, hour, day of month, month, day of week.
func ParseWindow(s string) (*Window, error) {
	parts := strings.Split(s, ";")
	if len(parts) != 3 {
		return nil, errors.New(`a window is "CRON; DURATION; TIMEZONE", as in "0 2 * * 1-5; 3h; Asia/Tokyo"`)
	}

	line := strings.TrimSpace(parts[0])
	if len(strings.Fields(line)) != 5 {
		return nil, fmt.Errorf(
			"the cron line %q has not five fields: minute, hour, day of month, month, day of week",
			line,
		)
	}

	starts, err := cron.ParseStandard(line)
	if err != nil {
		return nil, fmt.Errorf("cannot read the cron line: %w", err)
	}
	length, err := time.ParseDuration(strings.TrimSpace(parts[1]))
	if err != nil || length < time.Minute || length > maxWindow {
		return nil, fmt.Errorf("a window is open for a minute to %s", maxWindow)
	}

	name := strings.TrimSpace(parts[2])
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("there is no time zone %q", name)
	}

	w := &Window{starts: starts, length: length, zone: zone}
	if w.starts.Next(time.Unix(0, 0).In(zone)).IsZero() {
		return nil, fmt.Errorf("the cron line %q names no day that there is", line)
	}

	return w, nil
}

// IsOpen reports whether updates may start at that time.
func (w *Window) IsOpen(now time.Time) bool {
	start := w.starts.Next(now.Add(-w.length).In(w.zone))
	return !start.IsZero() && !start.After(now)
}

// NextOpening returns when the window opens next after now.
func (w *Window) NextOpening(now time.Time) time.Time { return w.starts.Next(now.In(w.zone)) }
