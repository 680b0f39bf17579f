package ssh

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"bijou/testscripts/kit/need"
)

// hook starts a process that looks like a process that a hook on one of the environment's machines has left
// running.
func hook(t *testing.T, machine string) (ended chan struct{}) {
	t.Helper()
	c := exec.Command("sleep", "600")
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "JUJU_ENV_UUID=e0a1", "JUJU_MACHINE_ID=" + machine}
	check(t, c.Start())
	ended = make(chan struct{})
	go func() { // ends with the process, which ends with the test at the latest
		_ = c.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	return ended
}

// sockets creates the directory of a machine's sockets on a host.
func sockets(t *testing.T, s *server, machine string) string {
	t.Helper()
	short := func(name string) string {
		sum := sha256.Sum256([]byte(name))
		return hex.EncodeToString(sum[:])[:8]
	}
	dir := s.dir + "/run/" + short("e0a1") + "-" + short(s.dir+"/lib/e0a1/machines/"+machine)
	check(t, os.MkdirAll(dir, 0o700))
	return dir
}

// TestStopLeavesMachineZero checks that Stop does not affect machine 0, since the environment's own host may
// also be in the pool.
func TestStopLeavesMachineZero(t *testing.T) {
	need.Whole(t)
	r := newRig(t, 1)
	i, err := r.Start(t.Context(), spec("1", ""), io.Discard)
	check(t, err)
	zero, own := hook(t, "0"), hook(t, "1")
	kept, gone := sockets(t, r.hosts[0], "0"), sockets(t, r.hosts[0], "1")
	check(t, r.Stop(t.Context(), i.ID))
	select {
	case <-own:
	case <-time.After(time.Minute):
		t.Error("what a hook has left still runs")
	}
	select {
	case <-zero:
		t.Error("a process of machine 0 was ended")
	default:
	}
	if !fileExists(kept) || fileExists(gone) {
		t.Errorf("sockets of machine 0: %t, of machine 1: %t", fileExists(kept), fileExists(gone))
	}
	wantNothing(t, r, false)
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
