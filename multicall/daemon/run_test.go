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

// fakeReexec records that a daemon has executed a new binary.
type fakeReexec struct{ ran *bool }

func (fakeReexec) Error() string { return "goes on as another" }

func (s fakeReexec) Exec() error {
	*s.ran = true
	return nil
}

// TestToldWhileHandingOver checks that a daemon ends if it gets a signal while it hands over to a new binary.
// The new binary would not receive the signal.
func TestToldWhileHandingOver(t *testing.T) {
	for _, told := range []bool{false, true} {
		ran := false
		code := Run(applet.Call{Streams: console.Streams{Out: io.Discard, Err: io.Discard}}, console.Command{Name: "d", Grammar: &struct{}{}},
			func(ctx context.Context, _ Daemon) error {
				if told {
					if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
						t.Fatal(err)
					}
					<-ctx.Done() // the signal has arrived, but another thread may receive it
				}
				return fakeReexec{&ran}
			})
		if code != 0 || ran == told {
			t.Errorf("told to end: %v: exit code %d, handed over: %v", told, code, ran)
		}
	}
}
