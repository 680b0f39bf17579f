package daemon

import (
	"context"
	"io"
	"os"
	"syscall"
	"testing"

	"bijou/multicall/applet"
	"bijou/multicall/console"
)

// fakeReexec records that a daemon has made way for a new binary.
type fakeReexec struct{ ran *bool }

func (fakeReexec) Error() string { return "goes on as another" }

func (s fakeReexec) Exec() error {
	*s.ran = true
	return nil
}

// TestToldWhileHandingOver checks that a daemon that is told to end while it makes way for a new binary
// ends. The new binary would never learn of it.
func TestToldWhileHandingOver(t *testing.T) {
	for _, told := range []bool{false, true} {
		ran := false
		code := Run(applet.Call{Streams: console.Streams{Out: io.Discard, Err: io.Discard}}, console.Command{Name: "d", Grammar: &struct{}{}},
			func(ctx context.Context, _ Daemon) error {
				if told {
					if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
						t.Fatal(err)
					}
					<-ctx.Done() // it has come, but another thread may get it
				}
				return fakeReexec{&ran}
			})
		if code != 0 || ran == told {
			t.Errorf("told to end: %v: exit code %d, handed over: %v", told, code, ran)
		}
	}
}
