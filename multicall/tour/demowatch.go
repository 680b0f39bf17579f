package tour

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"

	"bijou/multicall/console"
	"bijou/state/backoff"
)

// The states of `neco status` that the demo waits for.
const (
	stateUpToDate = "up to date"
	stateStopped  = "stopped"
)

// fleetStatus is the part of `neco status --format json` that the demo reads.
type fleetStatus struct {
	State   string         `json:"state"`
	Why     string         `json:"why"`
	Version string         `json:"version"`
	Servers []serverStatus `json:"servers"`
}

type serverStatus struct {
	LRN    int    `json:"lrn"`
	Worker string `json:"worker-version"`
	Status *struct {
		Version  string `json:"version"`
		Step     int    `json:"step"`
		StepName string `json:"step-name"`
		Finished bool   `json:"finished"`
		Error    bool   `json:"error"`
		Message  string `json:"message"`
	} `json:"status"`
}

// watchUntil prints each change until the fleet is in the state with the version.
func (d *demo) watchUntil(ctx context.Context, state, version string) error {
	begun, seen := time.Now(), map[int]string{}
	late := fmt.Errorf("the servers were not %s with %s within %s", state, version, demoTimeout)
	return d.pollUntil(ctx, late, func(f fleetStatus) (bool, error) {
		for lrn, line := range f.progressLines(version) {
			if line != "" && seen[lrn] != line {
				fmt.Fprintf(d.out, "  %5.1f s  server %d  %s\n", time.Since(begun).Seconds(), lrn, d.colourLine(line))
				seen[lrn] = line
			}
		}
		switch {
		case f.State == state && f.Version == version:
			return true, nil
		case f.State == stateStopped && f.Version == version:
			return false, fmt.Errorf("the update to %s was stopped: %s", version, f.Why)
		}
		return false, nil
	})
}

// awaitWorkers waits for all workers: an update begins without those that were never seen.
func (d *demo) awaitWorkers(ctx context.Context) error {
	late := fmt.Errorf("not all servers' workers were there within %s", demoTimeout)
	return d.pollUntil(ctx, late, func(f fleetStatus) (bool, error) {
		return !slices.ContainsFunc(f.Servers, func(s serverStatus) bool { return s.Worker == "" }), nil
	})
}

// pollUntil returns late after demoTimeout.
func (d *demo) pollUntil(ctx context.Context, late error, done func(f fleetStatus) (bool, error)) error {
	for begun := time.Now(); time.Since(begun) < demoTimeout; {
		f, err := d.readStatus(ctx)
		if err != nil {
			return err
		}
		if ok, err := done(f); ok || err != nil {
			return err
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
	return late
}

// readStatus accepts exit codes other than 0, which tell the state.
func (d *demo) readStatus(ctx context.Context) (f fleetStatus, err error) {
	out, err := d.newCommand(ctx, "neco", "status", "--format", "json").Output()
	if _, told := errors.AsType[*exec.ExitError](err); err != nil && (!told || len(out) == 0) {
		return f, fmt.Errorf("cannot run neco status: %w", err)
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, fmt.Errorf("cannot read what neco status prints: %w", err)
	}
	return f, nil
}

// progressLines has "" for a server that has not begun.
func (f fleetStatus) progressLines(version string) map[int]string {
	lines := map[int]string{}
	for _, s := range f.Servers {
		switch w := s.Status; {
		case w == nil || w.Version != version:
		case w.Error:
			lines[s.LRN] = "failed: " + w.Message
		case w.Finished:
			lines[s.LRN] = "done: runs " + s.Worker
		case w.Step == 0:
			lines[s.LRN] = w.StepName
		default:
			lines[s.LRN] = fmt.Sprintf("step %d: %s", w.Step, w.StepName)
		}
	}
	return lines
}

func (d *demo) colourLine(line string) string {
	switch line[:4] {
	case "fail":
		return d.paintText(console.Red, line)
	case "done":
		return d.paintText(console.Green, line)
	}
	return line
}
