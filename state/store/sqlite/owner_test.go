package sqlite

import (
	"os/exec"
	"testing"
	"time"
)

func TestDeadFor(t *testing.T) {
	self := thisProcess()
	if self.boot == "" || self.pidns == "" || self.start == "" {
		t.Skipf("/proc does not tell who we are: %+v", self)
	}
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer zombie.Wait()
	_, start := processStat(zombie.Process.Pid)
	with := func(change func(*owner)) owner {
		o := self
		change(&o)
		return o
	}
	for _, c := range []struct {
		name  string
		owner owner
		want  bool
	}{
		{"itself", self, false},
		{"its pid at another time", with(func(o *owner) { o.start = "1" }), true},
		{"another boot", with(func(o *owner) { o.boot = "other" }), true},
		{"another pid namespace", with(func(o *owner) { o.pidns, o.start = "pid:[1]", "1" }), false},
		{"a container's", with(func(o *owner) { o.boot, o.pidns, o.start = "other", "pid:[1]", "1" }), false},
		{"a pid that is free", with(func(o *owner) { o.pid = 1<<22 - 1 }), true},
		{"a zombie", with(func(o *owner) { o.pid, o.start = zombie.Process.Pid, start }), true},
		{"of unknown boot", with(func(o *owner) { o.boot, o.start = "", "1" }), false},
		{"of unknown namespace", with(func(o *owner) { o.pidns, o.start = "", "1" }), false},
		{"of unknown start", with(func(o *owner) { o.start = "" }), false},
	} {
		for deadline := time.Now().Add(time.Minute); c.owner.deadFor(self) != c.want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("%s: dead is %v", c.name, !c.want)
				break
			}
		}
	}
	if (owner{}).deadFor(owner{}) {
		t.Error("nothing known proves something")
	}
}

// TestSight: only what was seen counts. A process that stood still must not
// take the others, that may have stood still with it, for lost.
func TestSight(t *testing.T) {
	s := newSweeper(&db{options: Options{}.withDefaults()})
	now := time.Now()
	look := func(after time.Duration, counter int64) time.Duration {
		now = now.Add(after)
		seen := s.sight(leaseRow{id: 1, counter: counter}, now)
		s.seen[1] = seen
		return seen.age
	}
	for i, c := range []struct {
		after   time.Duration
		counter int64
		want    time.Duration
	}{
		{0, 1, 0},
		{250 * time.Millisecond, 1, 250 * time.Millisecond},
		{250 * time.Millisecond, 1, 500 * time.Millisecond},
		{time.Hour, 1, time.Second},
		{time.Hour, 2, 0},
		{250 * time.Millisecond, 2, 250 * time.Millisecond},
		{0, 3, 0},
	} {
		if got := look(c.after, c.counter); got != c.want {
			t.Errorf("look %d: age %v, want %v", i, got, c.want)
		}
	}
}
