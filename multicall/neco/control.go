package neco

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state/archive"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type recoverCmd struct{ reasonFlag }

// Run clears a stopped update away. Its workers' records go in batches, since they have no
// bound and count for nothing any more.
func (recoverCmd) Run(o *operator) error {
	err := o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return decide.Recover(s, now, o.audit.Who)
	})
	if errors.Is(err, decide.ErrNotStopped) {
		return console.Hint(err, "neco stop stops the update that runs; neco status shows it")
	}
	if err != nil {
		return err
	}
	if err := o.open(o.sweepLeftovers); err != nil {
		return err
	}
	s, err := read(o, o.loadStatusSnapshot)
	if err != nil || s.Current != nil || s.Recovery == nil {
		return err
	}
	if a := decide.Next(s, time.Now()); a.Verb == decide.Wait {
		o.note("recovery waits: %s", a.Why)
	}
	return nil
}

// maxSweepBatch is the number of records in one transaction.
const maxSweepBatch = 100

func (o *operator) sweepLeftovers(k *keyspace.Space) error {
	for {
		var left []updater.Change
		err := k.Update(o.ctx, func(tx *keyspace.Tx) error {
			s, err := decide.Load(tx.View, o.parts.Version)
			if err != nil {
				return err
			}
			left = decide.RemoveLeftovers(s)
			return updater.Apply(tx, slices.Clip(left[:min(maxSweepBatch, len(left))]))
		})
		if err != nil || len(left) <= maxSweepBatch {
			return err
		}
	}
}

type pauseCmd struct {
	For time.Duration `placeholder:"DURATION" help:"How long; default: until neco resume."`
	Why string        `placeholder:"REASON" help:"Why; it stands in the status."`
}

func (c pauseCmd) Run(o *operator) error {
	if c.For < 0 {
		return console.Usage(errors.New("--for is a time from now on, as in --for 2h"))
	}
	p := record.Pause{Why: c.Why}
	if c.For > 0 {
		until := time.Now().Add(c.For).UTC().Truncate(time.Second)
		p.Until = &until
		o.setDetail("until %s", until.Format(time.RFC3339))
	}
	return o.update(func(tx *keyspace.Tx) error { return tx.Put(keys.Pause, p) })
}

type resumeCmd struct{ reasonFlag }

func (resumeCmd) Run(o *operator) error {
	paused := false
	err := o.update(func(tx *keyspace.Tx) (err error) {
		if _, paused, err = keyspace.Load[record.Pause](tx, keys.Pause); paused {
			tx.Remove(keys.Pause)
		}
		return err
	})
	if err == nil && !paused {
		o.note("updates were not paused")
	}
	return err
}

type stopCmd struct {
	Why string `placeholder:"REASON" help:"Why; it stands in the status, in the history and in the alert."`
}

func (c stopCmd) Run(o *operator) error {
	return o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return decide.Halt(s, now, c.Why)
	})
}

type retryCmd struct{ reasonFlag }

func (retryCmd) Run(o *operator) error {
	return o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return decide.Retry(s, now, o.audit.Who)
	})
}

type backupCmd struct {
	File  string `arg:"" help:"Where it is written, readable by you only; - is stdout."`
	Force bool   `help:"Replace a file that is there."`
}

func (c backupCmd) Run(o *operator) error {
	return o.open(func(k *keyspace.Space) error {
		var h archive.Header
		write := func(w io.Writer) (err error) {
			h, err = updater.Backup(o.ctx, k, w, o.parts.Version)
			return err
		}
		var err error
		if c.File == "-" {
			err = write(o.streams.Out)
		} else {
			err = archive.WriteFile(c.File, c.Force, write)
		}
		if errors.Is(err, os.ErrExist) {
			err = console.Hint(err, "--force replaces it")
		}
		if err == nil {
			o.note("%d keys are backed up to %s, as of revision %d; not in it: %s", h.Keys, c.File, h.Revision, strings.Join(h.Lacks, "; "))
		}
		return err
	})
}

type restoreCmd struct {
	File    string `arg:"" help:"The backup."`
	Replace bool   `help:"Put it in the place of the keys that are there."`
}

func (c restoreCmd) Run(o *operator) error {
	url, err := o.storeURL()
	if err != nil {
		return err
	}
	return archive.OpenFile(c.File, archive.Keyspace, func(a *archive.Reader) error {
		err := updater.Restore(o.ctx, url, a, c.Replace)
		switch {
		case errors.Is(err, updater.ErrKeysThere):
			return console.Hint(err, "--replace puts the backup in their place; --state names another place")
		case errors.Is(err, keyspace.ErrRunning):
			return console.Hint(err, "systemctl stop neco-updater neco-worker, on every boot server; one that has died is gone "+keyspace.SessionTTL.String()+" later")
		case err == nil:
			o.note("%d keys of the backup of %s are restored; look at: neco status", len(a.Keys), a.Time.Format("2006-01-02 15:04:05Z"))
		}
		return err
	})
}

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
		found := s.Degraded.Findings
		if s.Degraded.More > 0 { // the leader's record holds a part of them
			found = s.Findings(now)
		}
		found = slices.DeleteFunc(slices.Clone(found), func(f record.Finding) bool {
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
		return updater.Replace(keys.Repair, record.Repair{Servers: wanted, Who: o.audit.Who}), nil
	})
	if err == nil && nothing {
		o.note("there is nothing to repair: the leader sees nothing that is not as the last update left it")
	}
	return err
}
