package agent

import (
	"testing"
	"time"

	"bijou/state"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
)

// TestUnitIsWokenByItsOwnKeysOnly counts the reads of the store. After a change only the unit that it
// concerns may read, and only once, even if the names of other units begin with its name.
func TestUnitIsWokenByItsOwnKeysOnly(t *testing.T) {
	need.Whole(t)
	const units, changes = 20, 10
	var f faulty
	r := newRig(t, statetest.New(t))
	r.agents = throughFaults(r.st, &f)
	statetest.AddService(t, r.st, r.recorder(statetest.Meta("app", "provides: {}\n"), nil, nil), units)
	r.start()
	r.settle()
	before := f.quiet(r)
	for range changes {
		r.update(func(tx *state.Tx) error {
			return tx.SetUnitStatus("app/1", state.WorkloadStatus{Status: "active", Since: time.Now()})
		})
	}
	r.eventually("the unit has looked", func() bool { return f.quiet(r) > before })
	if reads := f.quiet(r) - before; reads > changes {
		t.Errorf("%d changes of one unit made %d reads", changes, reads)
	}
}

// quiet waits until no unit reads the store, and returns the number of reads so far.
func (f *faulty) quiet(r *rig) (reads int) {
	count := func() int {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.reads
	}
	calm := 0
	r.eventually("nothing is read", func() bool {
		if now := count(); now != reads {
			reads, calm = now, 0
		}
		calm++
		return calm > 30 // consecutive checks, one each hundredth of a second
	})
	return reads
}
