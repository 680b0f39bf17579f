package daemon

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"bijou/agent/pulse"
)

// listenNotify acts as a service manager. It sends the notifications that it gets to the channel.
func listenNotify(t *testing.T, watchdog string) <-chan string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", watchdog)
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	told := make(chan string, 1000) // more than any test sends, so that the sender never blocks
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 4096); ; {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			told <- string(b[:n])
		}
	}()
	t.Cleanup(func() { conn.Close(); <-done })
	return told
}

// awaitNotification waits for this notification.
func awaitNotification(t *testing.T, told <-chan string, want string) {
	t.Helper()
	for limit := time.After(time.Minute); ; {
		select {
		case words := <-told:
			if strings.Contains(words+"\n", want+"\n") {
				return
			}
		case <-limit:
			t.Fatalf("the service manager is never told %q", want)
		}
	}
}

func TestManagerIsTold(t *testing.T) {
	told := listenNotify(t, "30000") // microseconds
	m := newServiceNotifier()
	ctx, cancel := context.WithCancel(t.Context())
	err := m.runNotifying(ctx, func() error {
		awaitNotification(t, told, "WATCHDOG=1") // also before it is ready, because systemd already watches the new binary after a handover
		m.NotifyReady()
		awaitNotification(t, told, "READY=1")
		awaitNotification(t, told, "WATCHDOG=1")
		cancel()
		awaitNotification(t, told, "STOPPING=1")
		awaitNotification(t, told, "WATCHDOG=1")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestHungLoopStarvesTheWatchdog checks that no notification is sent to the watchdog once a loop hangs.
func TestHungLoopStarvesTheWatchdog(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "30000000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	synctest.Test(t, func(t *testing.T) {
		m := &ServiceNotifier{Pulse: pulse.New()}
		rests := m.Pulse.Loop("one that rests")
		rests.MarkBusy()
		rests.MarkUnbounded()
		hangs := m.Pulse.Loop("one that hangs")
		hangs.MarkBusy()
		begin := time.Now()
		m.feedWatchdog(t.Context())
		if took := time.Since(begin); took < hangTimeout || took > hangTimeout+30*time.Second {
			t.Errorf("the watchdog was fed for %s, want about %s", took, hangTimeout)
		}
	})
}

func TestNobodyIsTold(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	m := newServiceNotifier()
	m.NotifyReady()
	if m.Listening {
		t.Error("there is a service manager")
	}
	if err := m.runNotifying(t.Context(), func() error { return nil }); err != nil {
		t.Error(err)
	}
}
