package record

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Window defines when updates can start: for some time after each moment of a cron schedule.
type Window struct {
	starts cron.Schedule
	length time.Duration
	zone   *time.Location
}

// maxWindow limits how long a window stays open.
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
			"the cron line %q does not have five fields: minute, hour, day of month, month, day of week",
			line,
		)
	}

	starts, err := cron.ParseStandard(line)
	if err != nil {
		return nil, fmt.Errorf("cannot read the cron line: %w", err)
	}
	length, err := time.ParseDuration(strings.TrimSpace(parts[1]))
	if err != nil || length < time.Minute || length > maxWindow {
		return nil, fmt.Errorf("a window must last between one minute and %s", maxWindow)
	}

	name := strings.TrimSpace(parts[2])
	zone, err := time.LoadLocation(name)
	// LoadLocation accepts "" and "Local", but "Local" differs between hosts, and "" hides that it means UTC.
	if err != nil || name == "" || name == "Local" {
		return nil, fmt.Errorf("there is no time zone %q", name)
	}

	w := &Window{starts: starts, length: length, zone: zone}
	if w.starts.Next(time.Unix(0, 0).In(zone)).IsZero() {
		return nil, fmt.Errorf("the cron line %q matches no date", line)
	}

	return w, nil
}

// IsOpen reports whether updates may start at the time now.
func (w *Window) IsOpen(now time.Time) bool {
	// The window is open if it has started within its own length before now.
	start := w.starts.Next(now.Add(-w.length).In(w.zone))
	return !start.IsZero() && !start.After(now)
}

// NextOpening returns the time of the next opening after now.
func (w *Window) NextOpening(now time.Time) time.Time { return w.starts.Next(now.In(w.zone)) }

// NextEdge returns the first time after now at which the window can open or close. It returns zero if the window
// is closed and never opens again. A window that opens again before it closes stays open at that time.
func (w *Window) NextEdge(now time.Time) time.Time {
	start := w.starts.Next(now.Add(-w.length).In(w.zone))
	isClosed := start.IsZero() || start.After(now)
	if isClosed {
		return start
	}
	return start.Add(w.length)
}
