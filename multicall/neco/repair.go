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
				return nil, console.Hint(fmt.Errorf("boot server %d is not registered", lrn), "neco bootserver list")
			}
		}
		switch r := s.Current; {
		case r == nil:
			return nil, errors.New("there was no update whose work could be repaired")
		case r.Stop:
			return nil, console.Hint(errors.New("an update is stopped"), "neco retry goes on with it, neco recover makes it again")
		case !r.Ended():
			return nil, errors.New("an update runs; neco status shows it")
		case s.Pause != nil && s.Pause.IsOn(now):
			return nil, console.Hint(errors.New("updates are paused"), "neco resume")
		}
		found := slices.DeleteFunc(slices.Clone(s.Degraded.Findings), func(f record.Finding) bool {
			return len(wanted) > 0 && !slices.Contains(wanted, f.Server)
		})
		if nothing = len(found) == 0; nothing {
			return nil, nil
		}
		for _, lrn := range s.Servers {
			if _, alive := s.Present[lrn]; !alive {
				return nil, console.Hint(fmt.Errorf("no worker is alive on server %d, and all take part in a repair", lrn),
					fmt.Sprintf("start neco-worker there; if the server is gone for good: neco bootserver remove %d", lrn))
			}
		}
		return []updater.Change{{Key: keys.Repair, Value: record.Repair{Servers: wanted, Who: o.audit.Who}}}, nil
	})
	if err == nil && nothing {
		o.note("there is nothing to repair: the leader sees nothing that is not as the last update left it")
	}
	return err
}

// judgeFleet takes the findings of the leader, which has watched for long enough to know;
// without a leader it judges by the present moment.
func (d *statusDoc) judgeFleet(s decide.Snapshot, now time.Time) {
	alive := 0
	for i, server := range d.Servers {
		inventory := s.Inventories[server.LRN]
		if server.Alive {
			alive++
			d.Servers[i].Seen = &now
		} else if !inventory.At.IsZero() {
			d.Servers[i].Seen = &inventory.At
		}
	}
	d.Findings = s.Degraded.Findings
	runs := s.Current != nil && !s.Current.Ended()
	switch {
	case len(s.Servers) == 0 || d.Leader != nil && (runs || len(d.Findings) == 0):
		d.Findings = nil
		return
	case d.State == stopped || runs && alive > 0:
		return
	case d.Leader != nil:
		d.Why = fmt.Sprintf("not all is as the last update left it (%d findings)", len(d.Findings))
	default:
		s.Absent = map[int]time.Time{}
		for _, lrn := range s.Servers {
			if _, here := s.Present[lrn]; !here {
				s.Absent[lrn] = time.Time{}
			}
		}
		d.Findings = s.Findings(now)
		if d.Why = "no neco-updater leads: nothing begins, and no alert is sent"; alive == 0 {
			d.Why = "no neco-updater and no neco-worker is alive"
		}
	}
	d.State = degraded
}

func (d statusText) formatSeen(s serverDoc) string {
	switch {
	case s.Alive:
		return "now"
	case s.Seen == nil:
		return "never"
	}
	return formatDuration(d.now.Sub(*s.Seen)) + " ago"
}
