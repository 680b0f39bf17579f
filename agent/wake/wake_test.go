package wake

import (
	"testing"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// TestFallenBehind: a loop that took nothing for too long needs a fresh snapshot, and its watch
// has not failed.
func TestFallenBehind(t *testing.T) {
	st := statetest.New(t)
	var w Watch
	defer w.Close()
	for range 100 { // who ends first, the watcher or its collector, is not to matter
		if err := w.Renew(t.Context(), st, 0, nil, state.WatchEnvironment()); err != nil {
			t.Fatal(err)
		}
		w.feed.Invalidate()
		if _, lost, err := w.Take(); !lost || err != nil {
			t.Fatalf("lost is %t, %v", lost, err)
		}
	}
}

// TestEnded: why a watch has ended is told once.
func TestEnded(t *testing.T) {
	st := statetest.New(t)
	var w Watch
	if err := w.Renew(t.Context(), st, 0, nil, state.WatchEnvironment()); err != nil {
		t.Fatal(err)
	}
	w.watcher.Close()
	var lost bool
	for !lost { // the watch may first tell of the environment's creation
		var err error
		<-w.Events()
		if _, lost, err = w.Take(); lost && err == nil {
			t.Error("why the watch has ended is not told")
		}
	}
	if w.Events() != nil {
		t.Error("the watch goes on")
	}
}
