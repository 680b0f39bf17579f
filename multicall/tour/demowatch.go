package tour

import (
	"context"
	"fmt"
	"slices"

	"bijou/multicall/console"
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
	changes := d.newChangePrinter(len("server 0 "), d.colourLine)
	late := fmt.Errorf("the servers were not %s with %s within %s", state, version, demoTimeout)
	return pollStatus(ctx, d.presenter, statusWait{"neco", demoTimeout, late}, func(f fleetStatus) (bool, error) {
		changes.print(f.progressLines(version))
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
	return pollStatus(ctx, d.presenter, statusWait{"neco", demoTimeout, late}, func(f fleetStatus) (bool, error) {
		return !slices.ContainsFunc(f.Servers, func(s serverStatus) bool { return s.Worker == "" }), nil
	})
}

// progressLines has "" for a server that has not begun.
func (f fleetStatus) progressLines(version string) map[string]string {
	lines := map[string]string{}
	for _, s := range f.Servers {
		name := fmt.Sprintf("server %d", s.LRN)
		switch w := s.Status; {
		case w == nil || w.Version != version:
		case w.Error:
			lines[name] = "failed: " + w.Message
		case w.Finished:
			lines[name] = "done: runs " + s.Worker
		case w.Step == 0:
			lines[name] = w.StepName
		default:
			lines[name] = fmt.Sprintf("step %d: %s", w.Step, w.StepName)
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
