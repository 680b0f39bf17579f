package agent

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"bijou/agent/pulse"
	"bijou/state"
	"bijou/state/store"
	"bijou/testscripts/kit/statetest"
)

// stuck is a store whose transactions hang while a test wants that.
type stuck struct {
	store.Store
	now  atomic.Bool
	free chan struct{}
}

func (s *stuck) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if s.now.Load() {
		<-s.free // it ignores ctx, as a real hang would
	}
	return s.Store.Commit(ctx, txn)
}

// TestPulse checks that an idle agent counts as resting, and that the pulse reveals an agent that hangs.
func TestPulse(t *testing.T) {
	st := statetest.New(t)
	s := &stuck{free: make(chan struct{})}
	r := newRig(t, st)
	r.agents = statetest.ShareWrapped(st, func(inner store.Store) store.Store {
		s.Store = inner
		return s
	})
	r.pulse = pulse.New()
	files := r.recorder(statetest.MySQL(), hooks("server"), nil)
	statetest.AddService(t, st, files, 1)
	r.start()
	r.eventually("the unit has started", func() bool { return len(r.noted("mysql/0")) >= 3 })
	r.eventually("all loops rest", func() bool { return r.pulse.HungLoop(0) == "" })

	s.now.Store(true)
	statetest.Update(t, st, func(tx *state.Tx) error {
		_, err := tx.AddUnit("mysql", state.Placement{})
		return err
	})
	r.eventually("a loop hangs", func() bool { return r.pulse.HungLoop(200*time.Millisecond) != "" })
	s.now.Store(false)
	close(s.free)
	r.eventually("the new unit has started", func() bool { return len(r.noted("mysql/1")) >= 3 })
	r.eventually("all loops rest again", func() bool { return r.pulse.HungLoop(0) == "" })
}
