package ssh

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"bijou/provision/provider"
	"bijou/testscripts/kit/need"
)

// takeover starts machine 1, and then continues with a provisioner on a different host, without a ledger. The
// machine's host is away while the result is true.
func takeover(t *testing.T, r *rig) (provider.Instance, *atomic.Bool) {
	t.Helper()
	i, err := r.Start(t.Context(), spec("1", ""), io.Discard)
	check(t, err)
	check(t, os.RemoveAll(filepath.Join(r.dir, "ssh", "machines")))
	var away atomic.Bool
	away.Store(true)
	lost := strings.TrimSuffix(strings.TrimPrefix(i.ID, "root@"), "/1")
	wire := r.dialContext
	r.Provider.dialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if away.Load() && address == lost {
			return nil, errors.New("no route to host")
		}
		return wire(ctx, network, address)
	}
	r.retryInterval = 0
	return i, &away
}

// TestTakeoverStart checks that an instance that another provisioner has recorded is not started on a
// different host, and is listed after the first attempt. The same is true once its host is back.
func TestTakeoverStart(t *testing.T) {
	need.Whole(t)
	r := newRig(t, 2)
	i, away := takeover(t, r)
	again := spec("1", "")
	again.Instance = i.ID
	if found := r.instances(); len(found) != 0 {
		t.Fatalf("it knows %+v", found)
	}
	if _, err := r.Start(t.Context(), again, io.Discard); !errors.Is(err, provider.ErrTransient) {
		t.Errorf("with its host away: %v", err)
	}
	if found := r.instances(); len(found) != 1 || found[0] != i {
		t.Errorf("instances %+v, want %+v", found, i)
	}
	away.Store(false)
	back, err := r.Start(t.Context(), again, io.Discard)
	check(t, err)
	if back != i {
		t.Errorf("instance %+v, want %+v", back, i)
	}
	check(t, r.Stop(t.Context(), i.ID))
	wantNothing(t, r, false)
}

// TestTakeoverStop checks that an instance that another provisioner has recorded is listed until its host
// is back, and is then stopped.
func TestTakeoverStop(t *testing.T) {
	need.Whole(t)
	r := newRig(t, 1)
	i, away := takeover(t, r)
	if err := r.Stop(t.Context(), i.ID); !errors.Is(err, provider.ErrTransient) {
		t.Errorf("with its host away: %v", err)
	}
	if found := r.instances(); len(found) != 1 || found[0] != i {
		t.Errorf("instances %+v, want %+v", found, i)
	}
	away.Store(false)
	check(t, r.Stop(t.Context(), i.ID))
	wantNothing(t, r, false)
}

// TestBadRecord checks an unreadable record. Other machines can still be listed, started and stopped. The
// record's own machine is not started on a different host. The record is replaced once its host answers.
func TestBadRecord(t *testing.T) {
	need.Whole(t)
	r := newRig(t, 2)
	i, err := r.Start(t.Context(), spec("1", ""), io.Discard)
	check(t, err)
	for _, bad := range []string{"{", `{"host":`, "null", "{}", `{"host":"root@"}`} {
		r.put("ssh/machines/1.json", bad, 0o600)
		r.put("ssh/machines/7.json", bad, 0o600)
		if _, err := r.Start(t.Context(), spec("7", ""), io.Discard); err == nil || !strings.Contains(err.Error(), "cannot read which host is machine 7") {
			t.Errorf("a machine that may be anywhere: %v", err)
		}
		other, err := r.Start(t.Context(), spec("2", ""), io.Discard)
		check(t, err)
		if found := r.instances(); len(found) != 2 || found[0] != i || found[1] != other {
			t.Errorf("instances %+v, want %+v", found, i)
		}
		if again, err := r.Start(t.Context(), spec("1", ""), io.Discard); err != nil || again != i {
			t.Errorf("after its host has answered: %+v, error %v", again, err)
		}
		check(t, r.Stop(t.Context(), other.ID))
	}
	check(t, r.Stop(t.Context(), i.ID))
}

// TestJujud checks that charm libraries find Juju's version in the place where Juju keeps it, and that files
// of other programs in that place remain.
func TestJujud(t *testing.T) {
	need.Whole(t)
	r := newRig(t, 1)
	link := r.hosts[0].dir + "/juju/tools/machine-1/jujud"
	i, err := r.Start(t.Context(), spec("1", ""), io.Discard)
	check(t, err)
	jujud := r.hosts[0].dir + "/lib/e0a1/tools/1-x/jujud"
	check(t, os.WriteFile(jujud, []byte("#!/bin/sh\necho jujud \"$@\"\n"), 0o755))
	juju := r.hosts[0].dir + "/lib/e0a1/tools/1-x/juju-exec"
	check(t, os.WriteFile(juju, []byte("#!/bin/sh\necho exec \"$@\"\n"), 0o755))
	if out, err := exec.Command(r.hosts[0].dir+"/juju-bin/juju-exec", "a/0", "b").Output(); string(out) != "exec a/0 b\n" || err != nil {
		t.Errorf("juju-exec says %q: %v", out, err)
	}
	if out, err := exec.Command(link, "version").Output(); string(out) != "jujud version\n" || err != nil {
		t.Errorf("it says %q: %v", out, err)
	}
	check(t, r.Stop(t.Context(), i.ID))
	wantNothing(t, r, false)
	check(t, os.MkdirAll(filepath.Dir(link), 0o755))
	check(t, os.WriteFile(link, []byte("real"), 0o755))
	i, err = r.Start(t.Context(), spec("1", ""), io.Discard)
	check(t, err)
	check(t, r.Stop(t.Context(), i.ID))
	if data, err := os.ReadFile(link); string(data) != "real" {
		t.Errorf("another program's jujud: %q, %v", data, err)
	}
}

// TestGivenUp checks that Stop needs no access to a host that the operator has given up. The machine starts
// on a different host only once no record names the old one.
func TestGivenUp(t *testing.T) {
	need.Whole(t)
	r := newRig(t, 2)
	i, away := takeover(t, r)
	empty := func() { r.put("ssh/machines/1.json", "", 0o600) }
	empty()
	again := spec("1", "")
	again.Instance = i.ID
	_, err := r.Start(t.Context(), again, io.Discard)
	if err == nil || errors.Is(err, provider.ErrTransient) || !strings.Contains(err.Error(), "has been given up") {
		t.Errorf("a start where it was given up: %v", err)
	}
	other, err := r.Start(t.Context(), spec("1", ""), io.Discard)
	check(t, err)
	if other.ID == i.ID {
		t.Errorf("it was started on the host that is away")
	}
	check(t, r.Stop(t.Context(), other.ID))
	empty()
	check(t, r.Stop(t.Context(), i.ID))
	if found := r.instances(); len(found) != 0 {
		t.Errorf("instances %+v", found)
	}
	away.Store(false)
	check(t, r.Stop(t.Context(), i.ID))
	wantNothing(t, r, false)
}
