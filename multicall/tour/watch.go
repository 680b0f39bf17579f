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
)

const (
	settleLimit = 3 * time.Minute // usually about two seconds
	look        = 100 * time.Millisecond
)

// status is the part of `juju status --format json` that the tour looks at.
type status struct {
	Services map[string]struct {
		Units map[string]unit `json:"units"`
	} `json:"services"`
	Relations map[string]struct {
		Services map[string]struct {
			State string `json:"state"`
		} `json:"services"`
	} `json:"relations"`
}

type unit struct {
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

// watch prints what changes until the pair is settled.
func (t *tour) watch(ctx context.Context) error {
	begun, seen := time.Now(), map[string]string{}
	for time.Since(begun) < settleLimit {
		s, err := t.status(ctx)
		if err != nil {
			return err
		}
		lines := s.lines()
		for _, name := range slices.Sorted(maps.Keys(lines)) {
			if seen[name] != lines[name] {
				fmt.Fprintf(t.out, "  %5.1f s  %-13s %s\n", time.Since(begun).Seconds(), name, t.shade(lines[name]))
			}
		}
		seen = lines
		if failed := s.failed(); failed != "" {
			return errors.New(failed)
		}
		if s.settled() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(look):
		}
	}
	return fmt.Errorf("the charms did not settle within %s", settleLimit)
}

// status asks juju.
func (t *tour) status(ctx context.Context) (s status, err error) {
	out, err := t.command(ctx, "juju", "status", "--format", "json").Output()
	if err != nil {
		return s, fmt.Errorf("cannot run juju status: %w", err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("cannot read what juju status prints: %w", err)
	}
	return s, nil
}

// lines says in a few words how each unit and relation is.
func (s status) lines() map[string]string {
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

// failed says which unit is in error; "" is none.
func (s status) failed() string {
	for _, service := range s.Services {
		for name, u := range service.Units {
			if strings.HasSuffix(u.State, "error") {
				return fmt.Sprintf("unit %q is in state %s: %s: %s", name, u.State, u.Info.Hook, u.Info.Message)
			}
		}
	}
	return ""
}

// settled tells if both units are started and active, and both ends are up.
func (s status) settled() bool {
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

// shade colours a state on a terminal.
func (t *tour) shade(line string) string {
	switch {
	case strings.Contains(line, "error"):
		return t.paint(console.Red, line)
	case strings.Contains(line, "active") || !strings.Contains(line, "start,") && strings.HasSuffix(line, "up"):
		return t.paint(console.Green, line)
	}
	return line
}
