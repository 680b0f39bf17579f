package agent

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func TestLostSessionIsReplacedAndAgentsAnnouncedAgain(t *testing.T) {
	st := statetest.New(t)
	statetest.Pair(t, st)
	p := newPresence(st, statetest.Claim(t, st, "0", "/m"), slog.New(slog.DiscardHandler))
	for _, agent := range []string{"unit-mysql-0", "unit-wordpress-0"} {
		if err := p.announceAgent(t.Context(), agent); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { p.run(ctx, nil) })
	present := func(v *state.View) (bool, error) {
		mysql, err := v.IsPresent("unit-mysql-0")
		if err != nil {
			return false, err
		}
		wordpress, err := v.IsPresent("unit-wordpress-0")
		return mysql && wordpress, err
	}
	statetest.Eventually(t, st, present)

	lost, err := p.process.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := lost.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	err = p.updaterFor("unit-mysql-0")(t.Context(), func(tx *state.Tx) error { return tx.SetUnitStatus("mysql/0", state.WorkloadStatus{Status: "active"}) })
	if err != nil {
		t.Errorf("a commit after the loss: %v", err)
	}
	statetest.Eventually(t, st, present)

	cancel()
	wg.Wait()
	statetest.View(t, st, func(v *state.View) error {
		if here, err := present(v); err != nil || here {
			t.Errorf("after the end: present %v, %v", here, err)
		}
		return nil
	})
}
