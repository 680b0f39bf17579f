package tour

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"bijou/multicall/console"
	"bijou/state/wrap"
)

// presenter prints a tour, and runs this binary's applets for it.
type presenter struct {
	out      io.Writer
	coloured bool
	environ  []string // of what it calls
}

func (s presenter) printHeading(format string, args ...any) {
	fmt.Fprintf(s.out, "\n%s\n", s.paintText(console.Bold, fmt.Sprintf(format, args...)))
}

func (s presenter) paintText(c console.Colour, text string) string {
	if !s.coloured {
		return text
	}
	return console.Paint(c, text)
}

func (s presenter) runApplet(ctx context.Context, applet string, args ...string) error {
	fmt.Fprintf(s.out, "\n%s\n", s.paintText(console.Green, "$ "+applet+" "+strings.Join(args, " ")))
	cmd := s.newCommand(ctx, applet, args...)
	cmd.Stdout, cmd.Stderr = s.out, s.out
	return wrap.Error(cmd.Run(), "cannot run %s %s", applet, args[0])
}

// newCommand uses /proc/self/exe, which is there even if the file was deleted, as go run does.
func (s presenter) newCommand(ctx context.Context, applet string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = applet
	cmd.Env = s.environ
	// A group of its own: an interruption is told by the tour alone, once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func withoutVars(environ []string, prefixes ...string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(word string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(word, p) })
	})
}
