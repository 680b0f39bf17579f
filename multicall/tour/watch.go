package tour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
)

const settleTimeout = 3 * time.Minute // usually about two seconds

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
	changes := t.newChangePrinter(13, t.colourLine)
	wait := statusWait{"juju", settleTimeout, fmt.Errorf("the charms did not settle within %s", settleTimeout)}
	return pollStatus(ctx, t.presenter, wait, func(s charmStatus) (bool, error) {
		changes.print(s.stateLines())
		if failed := s.failedUnit(); failed != "" {
			return false, errors.New(failed)
		}
		return s.isSettled(), nil
	})
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
