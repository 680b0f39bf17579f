package multicall

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"bijou/multicall/console"
	"bijou/state"
)

// TestOpenWaits: a daemon waits for a store at which nobody answers until it is
// told to end, and ends at once where there is none.
func TestOpenWaits(t *testing.T) {
	for _, c := range []struct {
		url  string
		want error
	}{
		{"etcd+unix:///nonexistent/sock?prefix=/a", context.DeadlineExceeded},
		{"sqlite:/nonexistent/store", state.ErrNoStore},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := (&daemonFlags{State: c.url}).openState(ctx)
		if !errors.Is(err, c.want) || errors.Is(err, state.ErrAway) {
			t.Errorf("%s: got %v, want %v", c.url, err, c.want)
		}
		cancel()
	}
}

// fakeReexec notes that a daemon has made way for it.
type fakeReexec struct{ ran *bool }

func (fakeReexec) Error() string { return "goes on as another" }

func (s fakeReexec) exec() error {
	*s.ran = true
	return nil
}

// TestToldWhileHandingOver: a daemon that is told to end in the moment in which it makes
// way for another binary ends: that one would never hear of it.
func TestToldWhileHandingOver(t *testing.T) {
	for _, told := range []bool{false, true} {
		ran := false
		code := runDaemon(call{streams: console.Streams{Out: io.Discard, Err: io.Discard}}, console.Command{Name: "d", Grammar: &struct{}{}},
			func(ctx context.Context, _ daemonParts) error {
				if told {
					if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
						t.Fatal(err)
					}
					<-ctx.Done() // it came: another thread may get it
				}
				return fakeReexec{&ran}
			})
		if code != 0 || ran == told {
			t.Errorf("told to end: %v: exit code %d, handed over: %v", told, code, ran)
		}
	}
}
