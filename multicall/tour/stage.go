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

// stage is where a tour is told, and how it calls this binary's applets.
type stage struct {
	out      io.Writer
	coloured bool
	environ  []string // of what it calls
}

// say prints a line of the story.
func (s stage) say(format string, args ...any) {
	fmt.Fprintf(s.out, "\n%s\n", s.paint(console.Bold, fmt.Sprintf(format, args...)))
}

// paint colours a text on a terminal.
func (s stage) paint(c console.Colour, text string) string {
	if !s.coloured {
		return text
	}
	return console.Paint(c, text)
}

// prompt shows a command as if the newcomer had typed it.
func (s stage) prompt(applet string, args ...string) {
	fmt.Fprintf(s.out, "\n%s\n", s.paint(console.Green, "$ "+applet+" "+strings.Join(args, " ")))
}

// run shows a command and runs it.
func (s stage) run(ctx context.Context, applet string, args ...string) error {
	s.prompt(applet, args...)
	cmd := s.command(ctx, applet, args...)
	cmd.Stdout, cmd.Stderr = s.out, s.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("cannot run %s %s: %w", applet, args[0], err)
	}
	return nil
}

// command is this binary as the applet. /proc/self/exe is there even if the file
// has been deleted, as go run does.
func (s stage) command(ctx context.Context, applet string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Args[0] = applet
	cmd.Env = s.environ
	// A group of its own: an interruption is told by the tour alone, once.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// without leaves out the variables with those prefixes.
func without(environ []string, prefixes ...string) []string {
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
