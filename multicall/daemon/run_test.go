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

// fakeReexec notes that a daemon has made way for it.
type fakeReexec struct{ ran *bool }

func (fakeReexec) Error() string { return "goes on as another" }

func (s fakeReexec) Exec() error {
	*s.ran = true
	return nil
}

// TestToldWhileHandingOver: a daemon that is told to end in the moment in which it makes
// way for another binary ends: that one would never hear of it.
func TestToldWhileHandingOver(t *testing.T) {
	for _, told := range []bool{false, true} {
		ran := false
		code := Run(applet.Call{Streams: console.Streams{Out: io.Discard, Err: io.Discard}}, console.Command{Name: "d", Grammar: &struct{}{}},
			func(ctx context.Context, _ Daemon) error {
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
