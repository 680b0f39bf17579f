package neco

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"bijou/multicall/console"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type repairCmd struct {
	reasonFlag
	LRN []string `arg:"" optional:"" name:"lrn" help:"The boot servers to repair; default: all."`
}

// Run requests from the leader a repair of the given servers, or of all servers. It returns an error if a given
// server is not registered, if there has been no update, if an update is running or stopped, or if updates are
// paused. If there is nothing to repair, it prints a note. Otherwise it also returns an error if a worker is
// missing, since all servers take part in a repair.
func (c repairCmd) Run(o *operator) error {
	wanted, err := lrnArgs{c.LRN}.parse()
	if err != nil {
		return err
	}

	o.setDetail("%s", cmp.Or(record.ListServers(wanted), "all servers"))
	nothingToRepair := false
	err = o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		if err := checkRepairable(s, wanted, now); err != nil {
			return nil, err
		}
		nothingToRepair = !needsRepair(s, wanted, now)
		if nothingToRepair {
			return nil, nil
		}
		if err := checkWorkersAlive(s); err != nil {
			return nil, err
		}

		return updater.Replace(keys.Repair, record.Repair{Servers: wanted, Who: o.audit.Who}), nil
	})
	if err != nil {
		return err
	}

	if nothingToRepair {
		o.note("there is nothing to repair: the leader has found no difference from the last update")
	}

	return nil
}

// checkRepairable returns an error if a wanted server is not registered. It also returns an error if there
// has been no update, if an update is running or stopped, or if updates are paused.
func checkRepairable(s decide.Snapshot, wanted []int, now time.Time) error {
	for _, lrn := range wanted {
		if !slices.Contains(s.Servers, lrn) {
			return console.Hint(fmt.Errorf("boot server %d is not registered", lrn),
				"neco bootserver list")
		}
	}

	r := s.Current
	switch {
	case r == nil:
		return errors.New("there has been no update that could be repaired")
	case r.Stop:
		return console.Hint(errors.New("an update is stopped"),
			"to continue it: neco retry; to start it again: neco recover")
	case !r.Ended():
		return errors.New("an update is running; neco status shows it")
	case s.Pause != nil && s.Pause.IsOn(now):
		return console.Hint(errors.New("updates are paused"), "neco resume")
	}

	return nil
}

// needsRepair reports whether there is a finding about one of the wanted servers, or about any server if
// wanted is empty.
func needsRepair(s decide.Snapshot, wanted []int, now time.Time) bool {
	findings := s.Degraded.Findings
	if s.Degraded.More > 0 {
		// The leader's record has only some of the findings.
		findings = s.Findings(now)
	}
	return slices.ContainsFunc(findings, func(f record.Finding) bool {
		return len(wanted) == 0 || slices.Contains(wanted, f.Server)
	})
}

// checkWorkersAlive returns an error if a server has no worker, since all servers take part in a repair.
func checkWorkersAlive(s decide.Snapshot) error {
	for _, lrn := range s.Servers {
		if _, alive := s.Present[lrn]; !alive {
			return console.Hint(fmt.Errorf("no worker is alive on server %d, but all servers take part in a repair", lrn),
				fmt.Sprintf(
					"start neco-worker on that server; if the server is gone for good: neco bootserver remove %d",
					lrn,
				))
		}
	}

	return nil
}
