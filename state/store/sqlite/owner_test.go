package sqlite

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"bijou/state/osutil"
	"bijou/state/store"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

func TestDeadFor(t *testing.T) {
	need.Whole(t)
	self := currentOwner()
	if self.boot == "" || self.pidns == "" || self.start == "" {
		t.Skipf("/proc does not tell who we are: %+v", self)
	}
	zombie := exec.Command("true")
	if err := zombie.Start(); err != nil {
		t.Fatal(err)
	}
	defer zombie.Wait()
	stat, err := osutil.ReadProcStat(zombie.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	start := stat.Start()
	with := func(change func(*leaseOwner)) leaseOwner {
		o := self
		change(&o)
		return o
	}
	for _, c := range []struct {
		name  string
		owner leaseOwner
		want  bool
	}{
		{"itself", self, false},
		{"its pid at another time", with(func(o *leaseOwner) { o.start = "1" }), true},
		{"another boot", with(func(o *leaseOwner) { o.boot = "other" }), true},
		{"another pid namespace", with(func(o *leaseOwner) { o.pidns, o.start = "pid:[1]", "1" }), false},
		{"a container's", with(func(o *leaseOwner) { o.boot, o.pidns, o.start = "other", "pid:[1]", "1" }), false},
		{"a pid that is free", with(func(o *leaseOwner) { o.pid = 1<<22 - 1 }), true},
		{"a zombie", with(func(o *leaseOwner) { o.pid, o.start = zombie.Process.Pid, start }), true},
		{"of unknown boot", with(func(o *leaseOwner) { o.boot, o.start = "", "1" }), false},
		{"of unknown namespace", with(func(o *leaseOwner) { o.pidns, o.start = "", "1" }), false},
		{"of unknown start", with(func(o *leaseOwner) { o.start = "" }), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			await.Until(t, await.Poll{Limit: time.Minute, Pause: time.Millisecond}, fmt.Sprint("dead is ", c.want), func() bool { return c.owner.isProvablyDead(self) == c.want })
		})
	}
	if (leaseOwner{}).isProvablyDead(leaseOwner{}) {
		t.Error("nothing known proves something")
	}
}

// TestSight checks that only observed time counts. A process that stood still must not consider others lost,
// since they may have stood still too.
func TestSight(t *testing.T) {
	need.Whole(t)
	s := &leaseSweeper{&db{options: Options{}.withDefaults()}, map[store.LeaseID]observation{}}
	now := time.Now()
	look := func(after time.Duration, counter int64) time.Duration {
		now = now.Add(after)
		seen := s.observeLease(leaseRow{id: 1, counter: counter}, now)
		s.observed[1] = seen
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
