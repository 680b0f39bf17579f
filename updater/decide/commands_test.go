package decide

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/updater"
	"bijou/updater/record"
)

func stopped(change func(*Snapshot)) Snapshot {
	return base(func(s *Snapshot) {
		s.Current = ended(true)
		s.Contents = map[string]record.Contents{"sabakan": {Version: "1.1"}, "cke": {Version: "1.1", Success: true}}
		if change != nil {
			change(s)
		}
	})
}

// TestRecover checks that an operator can also recover an update whose contents have failed. The original
// neco could not do that.
func TestRecover(t *testing.T) {
	got, err := Recover(stopped(nil), t0(), "me")
	want := []updater.Change{
		updater.Remove("status/current"),
		updater.Remove("status/gate"),
		updater.Remove("info/published"),
		updater.Put("history/0000000004", record.History{ID: 4, To: "1.1", Result: "recovered"}),
		updater.Put("info/recovery", record.Recovery{At: t0(), By: "me", Failed: "1.1"}),
		updater.Remove("contents/cke"), updater.Remove("contents/sabakan"),
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := Recover(running(), t0(), ""); !errors.Is(err, ErrNotStopped) {
		t.Errorf("of one that runs: %v", err)
	}
	if _, err := Recover(base(func(s *Snapshot) { s.Current = nil }), t0(), ""); !errors.Is(err, ErrNothingToRecover) {
		t.Errorf("of none: %v", err)
	}
}

// TestHistoryForgetsNothing checks that a retry adds an attempt to the history and does not change the
// previous one.
func TestHistoryForgetsNothing(t *testing.T) {
	var h record.History
	of := func(changes []updater.Change) record.History { h, _ := changes[1].Value.(record.History); return h }
	s := running(at(2), failed(1), at(2))
	s.Entry.Begin(1, "you", t0())
	h = of(Next(s, t0()).Changes)
	s.Entry, s.Current = h, ended(true)
	changes, err := Retry(s, t0().Add(time.Hour), "me")
	if err != nil {
		t.Fatal(err)
	}
	s.Entry = of(changes)
	s.Current = ptr(changes[0].Value.(record.Request))
	s.Workers = map[int]record.Status{1: finished(), 2: finished(), 10: finished()}
	h = of(Next(s, t0().Add(2*time.Hour)).Changes)
	one, two := t0(), t0().Add(2*time.Hour)
	want := []record.Attempt{
		{Number: 1, Who: "you", Result: "stopped", Why: "server 2, step step: broken", AtFault: []int{2}, StartedAt: t0(), EndedAt: &one},
		{Number: 2, Who: "me", Result: "succeeded", StartedAt: t0().Add(time.Hour), EndedAt: &two},
	}
	if diff := cmp.Diff(want, h.Attempts); diff != "" || h.Result != "succeeded" || h.AtFault != nil {
		t.Errorf("%s %+v", diff, h)
	}
}

func ptr[T any](v T) *T { return &v }

func TestRetry(t *testing.T) {
	got, err := Retry(stopped(nil), t0(), "me")
	want := []updater.Change{
		updater.Put("status/current", *request(func(r *record.Request) { r.Attempt = 2 })),
		updater.Put("history/0000000004", record.History{ID: 4, To: "1.1", Result: "running", Attempts: []record.Attempt{{Number: 2, Who: "me", Result: "running", StartedAt: t0()}}}),
		updater.Remove("contents/sabakan"),
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := Retry(running(), t0(), "me"); !errors.Is(err, ErrNotStopped) {
		t.Errorf("of one that runs: %v", err)
	}
	if _, err := Retry(stopped(func(s *Snapshot) { s.Servers = []int{1, 10} }), t0(), "me"); err == nil || !strings.Contains(err.Error(), "server 2 is no longer registered") {
		t.Errorf("with a server less: %v", err)
	}
}

// TestAtStart checks which updates a restarted updater recovers: only stopped updates that have lost a server
// since then.
func TestAtStart(t *testing.T) {
	less := func(s *Snapshot) { s.Servers = []int{1, 10} }
	tests := []struct {
		what     string
		s        Snapshot
		recovers bool
	}{
		{"stopped, one server less", stopped(less), true},
		{"stopped", stopped(nil), false},
		{"stopped, one server more", stopped(func(s *Snapshot) { s.Servers = []int{1, 2, 3, 10} }), false},
		{"running, one server less", with(running(), less), false},
		{"done, one server less", base(less), false},
		{"nothing", base(func(s *Snapshot) { s.Current = nil }), false},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			if got := AtStart(tt.s, t0()); (got != nil) != tt.recovers {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestHalt(t *testing.T) {
	got, err := Halt(running(at(1)), t0(), "a look")
	if err != nil || len(got) != 3 || got[0].Value.(record.Request).Why != "by hand: a look" {
		t.Errorf("%v, %v", got, err)
	}
	for _, s := range []Snapshot{base(nil), stopped(nil)} {
		if _, err := Halt(s, t0(), ""); !errors.Is(err, ErrNotRunning) {
			t.Errorf("of none that runs: %v", err)
		}
	}
}

// TestUnregister checks that the removal of server 1 does not remove the keys of server 10. The original neco
// removed both.
func TestUnregister(t *testing.T) {
	want := []updater.Change{updater.Remove("info/bootservers/1"), updater.Remove("presence/1"), updater.Remove("claims/1"), updater.Remove("inventory/1"), updater.Remove("activity/1"), updater.Remove("status/bootserver/1")}
	if diff := cmp.Diff(want, Unregister(base(nil), 1)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, Unregister(stopped(nil), 1)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:5], Unregister(running(at(1)), 1)); diff != "" {
		t.Errorf("while the update runs: %s", diff)
	}
}

func TestLeftovers(t *testing.T) {
	s := running(at(1), at(2))
	old := at(1)
	old.Request = 3
	s.Workers[7] = old
	if diff := cmp.Diff([]updater.Change{updater.Remove("status/bootserver/7")}, RemoveLeftovers(s)); diff != "" {
		t.Error(diff)
	}
}
