package neco

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/etcdtest"
)

// endpoints are three places of an etcd of three members, each of which can come to be
// dead: it takes connections, and answers nothing.
type endpoints struct {
	t     *testing.T
	dir   string
	alive []string // sockets
}

func newEndpoints(t *testing.T) *endpoints {
	t.Helper()
	dir, err := os.MkdirTemp("", "dead-") // short: a socket's path has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "silent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	e := &endpoints{t, dir, etcdtest.For(t, etcdtest.Options{Members: 3}).Sockets()}
	e.dead(-1)
	return e
}

// dead makes that endpoint the one that is dead; -1: none is.
func (e *endpoints) dead(which int) {
	e.t.Helper()
	for i, target := range e.alive {
		if i == which {
			target = filepath.Join(e.dir, "silent")
		}
		_ = os.Remove(e.at(i))
		if err := os.Symlink(target, e.at(i)); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *endpoints) at(i int) string { return filepath.Join(e.dir, fmt.Sprintf("e%d:1", i)) }

func (e *endpoints) url(prefix string) string {
	return "etcd+unix://" + strings.Join([]string{e.at(0), e.at(1), e.at(2)}, ",") + "?prefix=/" + prefix
}

// run calls this binary as a program of bijou's, and returns how long it took.
func (e *endpoints) run(line string) time.Duration {
	e.t.Helper()
	self, err := os.Executable()
	if err != nil {
		e.t.Fatal(err)
	}
	began := time.Now()
	c := exec.Command(self)
	c.Args = strings.Fields(line)
	c.Dir, c.Env = e.dir, append(os.Environ(), "BIJOU_HOME="+e.dir+"/home", "NECO_STATE="+e.url("neco"), "BIJOU_STATE="+e.url("juju"))
	if out, err := c.CombinedOutput(); err != nil && c.ProcessState.ExitCode() != 5 { // degraded: no daemon runs
		e.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return time.Since(began)
}

// TestOneEndpointDead: whichever endpoint of etcd is dead, who asks how things are is told
// about as soon as if none were, and half a second later at most. That one is not waited
// for until it is given up, which takes two seconds and more.
func TestOneEndpointDead(t *testing.T) {
	etcdtest.Need(t)
	e := newEndpoints(t)
	e.run("neco init")
	e.run("neco bootserver add 0 1 2")
	e.run("juju bootstrap")
	defer e.run("juju destroy-environment --yes")
	for _, line := range []string{"neco status", "juju status"} {
		took := map[int][]time.Duration{}
		const times = 7
		for range times {
			for which := -1; which < len(e.alive); which++ { // side by side: the machine's other work changes
				e.dead(which)
				took[which] = append(took[which], e.run(line))
			}
		}
		median := func(which int) time.Duration { return slices.Sorted(slices.Values(took[which]))[times/2] }
		for which := range e.alive {
			t.Logf("%s: endpoint %d dead: %s, none: %s", line, which, median(which).Round(time.Millisecond), median(-1).Round(time.Millisecond))
			if median(which) > 3*median(-1)+500*time.Millisecond {
				t.Errorf("%s took %s with endpoint %d dead, and %s with none", line, median(which), which, median(-1))
			}
		}
		e.dead(-1)
	}
}
