package wake

import (
	"testing"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// TestFallenBehind checks that a loop that has fallen behind must take a fresh snapshot, and that its
// watch does not report an error for it.
func TestFallenBehind(t *testing.T) {
	st := statetest.New(t)
	var w Watch
	defer w.Close()
	for range 100 { // repeated, because the watcher or its collector may end first
		if err := w.Renew(t.Context(), st, 0, nil, state.WatchEnvironment()); err != nil {
			t.Fatal(err)
		}
		w.feed.Invalidate()
		if _, lost, err := w.Take(); !lost || err != nil {
			t.Fatalf("lost is %t, %v", lost, err)
		}
	}
}

// TestEnded checks that a watch returns the reason for its end once.
func TestEnded(t *testing.T) {
	st := statetest.New(t)
	var w Watch
	if err := w.Renew(t.Context(), st, 0, nil, state.WatchEnvironment()); err != nil {
		t.Fatal(err)
	}
	w.watcher.Close()
	var lost bool
	for !lost { // the watch may first report the environment's creation
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
