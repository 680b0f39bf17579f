package neco

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// These are the ways in which an endpoint can be dead. It accepts connections and sends nothing, like a hung
// member. Or it also accepts calls, like a member that is cut off from the others.
const (
	hangs  = "hangs"
	cutOff = "cut off"
)

// endpoints are the three endpoints of an etcd cluster, each of which can be made dead.
type endpoints struct {
	t     *testing.T
	dir   string
	alive []string // sockets

	asked, givenUp atomic.Int64 // calls to the endpoint that is cut off, and those that waited for their timeout
}

func newEndpoints(t *testing.T) *endpoints {
	t.Helper()
	// The name is short, since the path of a socket is limited to 107 bytes.
	dir, err := os.MkdirTemp("", "dead-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	e := &endpoints{t: t, dir: dir, alive: etcdtest.For(t, etcdtest.Options{Members: 3}).Sockets()}
	for _, way := range []string{hangs, cutOff} {
		l, err := net.Listen("unix", filepath.Join(dir, way))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		if way == cutOff {
			s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
				e.asked.Add(1)
				<-s.Context().Done()
				if errors.Is(s.Context().Err(), context.DeadlineExceeded) {
					e.givenUp.Add(1)
				}
				return s.Context().Err()
			}))
			go func() { _ = s.Serve(l) }() // until Stop
			t.Cleanup(s.Stop)
		}
	}
	e.dead(-1, "")
	return e
}

// dead makes that endpoint the only dead one, in the given way. With -1 no endpoint is dead.
func (e *endpoints) dead(which int, way string) {
	e.t.Helper()
	for i, target := range e.alive {
		if i == which {
			target = filepath.Join(e.dir, way)
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

// run runs this binary as a program of bijou, and returns the time that it took.
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
	// Exit code 5 means degraded, since no daemon is running.
	if out, err := c.CombinedOutput(); err != nil && c.ProcessState.ExitCode() != 5 {
		e.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return time.Since(began)
}

// TestOneEndpointDead checks each dead endpoint of etcd in turn. A command that requests a status must answer
// without waiting for the dead endpoint's timeout, which is two seconds or more. The test logs the times. It
// fails if more than one in ten calls waited for the timeout. It allows some, because the machine may have
// other work.
func TestOneEndpointDead(t *testing.T) {
	need.Whole(t)
	etcdtest.Need(t)
	e := newEndpoints(t)
	e.run("neco init")
	e.run("neco bootserver add 0 1 2")
	e.run("juju bootstrap")
	defer e.run("juju destroy-environment --yes")
	for _, line := range []string{"neco status", "juju status"} {
		took := map[string][]time.Duration{}
		const times = 5
		// The endpoints take turns, since the load of the machine changes.
		for range times {
			took["none"] = append(took["none"], e.run(line))
			for which := range e.alive {
				for _, way := range []string{hangs, cutOff} {
					e.dead(which, way)
					what := fmt.Sprintf("endpoint %d %s", which, way)
					took[what] = append(took[what], e.run(line))
				}
			}
			e.dead(-1, "")
		}
		median := func(what string) time.Duration { return slices.Sorted(slices.Values(took[what]))[times/2] }
		for _, what := range slices.Sorted(maps.Keys(took)) {
			t.Logf("%s, %s: %s", line, what, median(what).Round(time.Millisecond))
		}
	}
	asked, givenUp := e.asked.Load(), e.givenUp.Load()
	if t.Logf("the one that is cut off was asked %d times, and %d times waited for", asked, givenUp); asked == 0 || 10*givenUp > asked {
		t.Errorf("the endpoint that is cut off was asked %d times, and %d times waited for until time was up", asked, givenUp)
	}
}
