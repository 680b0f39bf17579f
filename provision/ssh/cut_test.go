package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bijou/provision/provider"
	"bijou/testscripts/kit/need"
)

// TestCutAnywhere breaks the connection between any two commands of a start, and starts again. There must be
// one instance, and no trace of it may remain after a stop.
func TestCutAnywhere(t *testing.T) {
	need.Whole(t)
	for n := int64(1); ; n++ {
		r := newRig(t, 1)
		s := r.hosts[0]
		var commands atomic.Int64
		s.set(func(s *server) {
			s.edit = func(command string) string {
				if commands.Add(1) != n {
					return command
				}
				s.cut()
				return "exit 1"
			}
		})
		_, err := r.Start(t.Context(), spec("1", ""), io.Discard)
		s.set(func(s *server) { s.edit = nil })
		if err == nil {
			if n < 8 {
				t.Errorf("only %d cuts were made", n)
			}
			check(t, r.Stop(t.Context(), "root@"+s.address+"/1"))
			return
		}
		if !errors.Is(err, provider.ErrTransient) {
			t.Errorf("cut %d: %v", n, err)
		}
		i, err := r.Start(t.Context(), spec("1", ""), io.Discard)
		check(t, err)
		if found := r.instances(); len(found) != 1 || found[0] != i {
			t.Errorf("cut %d: instances %+v, want %+v", n, found, i)
		}
		check(t, r.Stop(t.Context(), i.ID))
		wantNothing(t, r, false)
	}
}

// TestAway checks a machine whose host is away. The machine counts as running, and is neither started on a
// different host nor stopped. Other machines are not affected. Once the host is back, the machine can be
// stopped.
func TestAway(t *testing.T) {
	need.Whole(t)
	r := newRig(t, 2)
	var started []provider.Instance
	for _, machine := range []string{"1", "2"} {
		i, err := r.Start(t.Context(), spec(machine, ""), io.Discard)
		check(t, err)
		started = append(started, i)
	}
	down := errors.New("no route to host")
	var away atomic.Bool
	wire := r.dialContext
	r.Provider.dialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if away.Load() && address == r.hosts[0].address {
			return nil, down
		}
		return wire(ctx, network, address)
	}
	away.Store(true)
	for range 2 { // the first list asks the host, and the second does not
		if found := r.instances(); len(found) != 2 || found[0] != started[0] || found[1] != started[1] {
			t.Fatalf("with a host away: instances %+v, want %+v", found, started)
		}
	}
	if _, err := r.Start(t.Context(), spec("1", ""), io.Discard); !errors.Is(err, provider.ErrTransient) || !strings.Contains(err.Error(), "no route to host") {
		t.Errorf("a machine whose host is away was started elsewhere, or: %v", err)
	}
	err := r.Stop(t.Context(), started[0].ID)
	if err == nil || !strings.Contains(err.Error(), "cannot stop machine 1: cannot reach host") || !strings.Contains(err.Error(), "hint: bijou retries the stop; if the host is gone for good, empty this file: truncate -s 0") {
		t.Errorf("a stop of what is away: %v", err)
	}
	away.Store(false)
	check(t, r.Stop(t.Context(), started[0].ID))
	r.retryInterval = 0
	if found := r.instances(); len(found) != 1 || found[0] != started[1] {
		t.Errorf("after its end: %+v", found)
	}
	check(t, r.Stop(t.Context(), started[1].ID))
}

// TestSilent checks that a host that accepts connections and sends nothing delays Instances once, by the
// host's timeout, and does not delay the next call.
func TestSilent(t *testing.T) {
	need.Whole(t)
	r := newRig(t, 2)
	i, err := r.Start(t.Context(), spec("1", ""), io.Discard)
	check(t, err)
	var asked atomic.Int64
	wire := r.dialContext
	r.hostTimeout = 100 * time.Millisecond
	r.Provider.dialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address != r.hosts[0].address {
			return wire(ctx, network, address)
		}
		asked.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for range 3 {
		if found := r.instances(); len(found) != 1 || found[0] != i {
			t.Errorf("instances %+v, want %+v", found, i)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("a silent host was asked %d times in a row", n)
	}
	r.Provider.dialContext = wire
	check(t, r.Stop(t.Context(), i.ID))
}

// TestManySilent checks that Instances returns within its timeout if more hosts are silent than it asks in
// parallel. It must also list the recorded instances of hosts that it could not ask in time.
func TestManySilent(t *testing.T) {
	r := newRig(t, 0)
	var pool []string
	for n := range 3 * maxParallelPolls {
		at := fmt.Sprintf("root@silent%d", n)
		pool = append(pool, at)
		host, err := parseTarget(at)
		check(t, err)
		check(t, r.writeRecord(host, strconv.Itoa(n+1), ""))
	}
	r.env.Config["pool"] = "[" + strings.Join(pool, ", ") + "]"
	r.pollTimeout, r.hostTimeout = 100*time.Millisecond, time.Hour
	r.Provider.dialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if found := r.instances(); len(found) != len(pool) {
		t.Errorf("%d of %d are listed", len(found), len(pool))
	}
}

// TestSudo checks logins as a user who can become root with sudo, and as a user who cannot.
func TestSudo(t *testing.T) {
	need.Whole(t)
	r := newRig(t, 1)
	s := r.hosts[0]
	s.set(func(s *server) { s.path = s.dir + "/bin:" })
	check(t, os.Mkdir(s.dir+"/bin", 0o755))
	tool := func(name, text string) { check(t, os.WriteFile(s.dir+"/bin/"+name, []byte("#!/bin/sh\n"+text), 0o755)) }
	tool("id", `echo "${AS_ROOT:-1000}"`)
	tool("sudo", "echo 'sudo: a password is required' >&2; exit 1")
	as := spec("1", "ubuntu@"+s.address)
	_, err := r.Start(t.Context(), as, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `user "ubuntu" is not root on host`) || !strings.Contains(err.Error(), "hint: let that user use sudo without a password") {
		t.Errorf("without sudo: %v", err)
	}
	tool("sudo", `[ "$1" = -n ] && shift 2; export AS_ROOT=0; exec "$@"`)
	i, err := r.Start(t.Context(), as, io.Discard)
	check(t, err)
	check(t, r.Stop(t.Context(), i.ID))
	wantNothing(t, r, false)
}
