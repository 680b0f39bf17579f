package tour

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"bijou/multicall/console"
)

// presenter is where a tour is told, and how it calls this binary's applets.
type presenter struct {
	out      io.Writer
	coloured bool
	environ  []string // of what it calls
}

// printHeading prints a line of the story.
func (s presenter) printHeading(format string, args ...any) {
	fmt.Fprintf(s.out, "\n%s\n", s.paintText(console.Bold, fmt.Sprintf(format, args...)))
}

// paintText colours a text on a terminal.
func (s presenter) paintText(c console.Colour, text string) string {
	if !s.coloured {
		return text
	}
	return console.Paint(c, text)
}

// printPrompt shows a command as if the newcomer had typed it.
func (s presenter) printPrompt(applet string, args ...string) {
	fmt.Fprintf(s.out, "\n%s\n", s.paintText(console.Green, "$ "+applet+" "+strings.Join(args, " ")))
}

// runApplet shows a command and runs it.
func (s presenter) runApplet(ctx context.Context, applet string, args ...string) error {
	s.printPrompt(applet, args...)
	cmd := s.newCommand(ctx, applet, args...)
	cmd.Stdout, cmd.Stderr = s.out, s.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot run %s %s: %w", applet, args[0], err)
	}
	return nil
}

// newCommand is this binary as the applet. /proc/self/exe is there even if the file
// has been deleted, as go run does.
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

// withoutVars leaves out the variables with those prefixes.
func withoutVars(environ []string, prefixes ...string) []string {
	var kept []string
	for _, word := range environ {
		drop := false
		for _, p := range prefixes {
			drop = drop || strings.HasPrefix(word, p)
		}
		if !drop {
			kept = append(kept, word)
		}
	}
	return kept
}
