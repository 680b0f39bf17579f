package tour

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/backoff"
)

const (
	settleTimeout = 3 * time.Minute // usually about two seconds
	pollInterval  = 100 * time.Millisecond
)

// charmStatus is the part of `juju status --format json` that the tour reads.
type charmStatus struct {
	Services map[string]struct {
		Units map[string]unitStatus `json:"units"`
	} `json:"services"`
	Relations map[string]struct {
		Services map[string]struct {
			State string `json:"state"`
		} `json:"services"`
	} `json:"relations"`
}

type unitStatus struct {
	State    string `json:"state"`
	Workload struct {
		Current string `json:"current"`
		Message string `json:"message"`
	} `json:"workload-status"`
	Info struct {
		Hook    string `json:"hook"`
		Message string `json:"message"`
	} `json:"state-info"`
}

// watchCharms prints each change until the charms have settled.
func (t *tour) watchCharms(ctx context.Context) error {
	begun, seen := time.Now(), map[string]string{}
	for time.Since(begun) < settleTimeout {
		s, err := t.readStatus(ctx)
		if err != nil {
			return err
		}
		lines := s.stateLines()
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			if seen[name] != lines[name] {
				fmt.Fprintf(t.out, "  %5.1f s  %-13s %s\n", time.Since(begun).Seconds(), name, t.colourLine(lines[name]))
			}
		}
		seen = lines
		if failed := s.failedUnit(); failed != "" {
			return errors.New(failed)
		}
		if s.isSettled() {
			return nil
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
	return fmt.Errorf("the charms did not settle within %s", settleTimeout)
}

func (t *tour) readStatus(ctx context.Context) (s charmStatus, err error) {
	out, err := t.newCommand(ctx, "juju", "status", "--format", "json").Output()
	if err != nil {
		return s, fmt.Errorf("cannot run juju status: %w", err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("cannot read what juju status prints: %w", err)
	}
	return s, nil
}

func (s charmStatus) stateLines() map[string]string {
	lines := map[string]string{}
	for _, service := range s.Services {
		for name, u := range service.Units {
			lines[name] = strings.TrimSpace(u.State + "  " + strings.TrimSpace(u.Workload.Current+" "+u.Workload.Message))
		}
	}
	for name, r := range s.Relations {
		var ends []string
		for service, end := range r.Services {
			ends = append(ends, service+" "+end.State)
		}
		slices.Sort(ends)
		lines[name] = strings.Join(ends, ", ")
	}
	return lines
}

// failedUnit returns "" if no unit is in error.
func (s charmStatus) failedUnit() string {
	for _, service := range s.Services {
		for name, u := range service.Units {
			if strings.HasSuffix(u.State, "error") {
				return fmt.Sprintf("unit %q is in state %s: %s: %s", name, u.State, u.Info.Hook, u.Info.Message)
			}
		}
	}
	return ""
}

// isSettled reports whether both units are started and active, and both ends of the
// relation up.
func (s charmStatus) isSettled() bool {
	units := 0
	for _, service := range s.Services {
		for _, u := range service.Units {
			if u.State != "started" || u.Workload.Current != "active" {
				return false
			}
			units++
		}
	}
	for _, r := range s.Relations {
		for _, end := range r.Services {
			if end.State != "up" {
				return false
			}
		}
	}
	return units == 2 && len(s.Relations) > 0
}

func (t *tour) colourLine(line string) string {
	switch {
	case strings.Contains(line, "error"):
		return t.paintText(console.Red, line)
	case strings.Contains(line, "active") || !strings.Contains(line, "start,") && strings.HasSuffix(line, "up"):
		return t.paintText(console.Green, line)
	}
	return line
}
