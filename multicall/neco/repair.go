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
	LRN []string `arg:"" optional:"" name:"lrn" help:"The boot servers whose components are put right; default: all."`
}

// Run asks the leader for a repair of the servers, or of all. It refuses if an update runs or is stopped,
// or if a worker is missing, since all take part in a repair.
func (c repairCmd) Run(o *operator) error {
	wanted, err := lrnArgs{c.LRN}.parse()
	if err != nil {
		return err
	}

	o.setDetail("%s", cmp.Or(record.ListServers(wanted), "all servers"))
	nothing := false
	err = o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		for _, lrn := range wanted {
			if !slices.Contains(s.Servers, lrn) {
				return nil, console.Hint(fmt.Errorf("boot server %d is not registered", lrn),
					"neco bootserver list")
			}
		}

		switch r := s.Current; {
		case r == nil:
			return nil, errors.New("there was no update whose work could be repaired")
		case r.Stop:
			return nil, console.Hint(errors.New("an update is stopped"),
				"neco retry goes on with it, neco recover makes it again")
		case !r.Ended():
			return nil, errors.New("an update runs; neco status shows it")
		case s.Pause != nil && s.Pause.IsOn(now):
			return nil, console.Hint(errors.New("updates are paused"), "neco resume")
		}

		found := s.Degraded.Findings
		if s.Degraded.More > 0 { // the leader's record holds a part of them
			found = s.Findings(now)
		}
		found = slices.DeleteFunc(slices.Clone(found), func(f record.Finding) bool {
			return len(wanted) > 0 && !slices.Contains(wanted, f.Server)
		})
		nothing = len(found) == 0
		if nothing {
			return nil, nil
		}

		for _, lrn := range s.Servers {
			if _, alive := s.Present[lrn]; !alive {
				return nil, console.Hint(fmt.Errorf(
					"no worker is alive on server %d, and all take part in a repair",
					lrn,
				),
					fmt.Sprintf(
						"start neco-worker there; if the server is gone for good: neco bootserver remove %d",
						lrn,
					))
			}
		}

		return updater.Replace(keys.Repair, record.Repair{Servers: wanted, Who: o.audit.Who}), nil
	})
	if err != nil {
		return err
	}

	if nothing {
		o.note("there is nothing to repair: the leader sees nothing that is not as the last update left it")
	}

	return nil
}
