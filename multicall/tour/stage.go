package tour

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"bijou/multicall/console"
	"bijou/state/backoff"
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

// pollInterval is the time between two looks at a status.
const pollInterval = 100 * time.Millisecond

// statusWait is whose status is waited for, how long, and the error that is returned then.
type statusWait struct {
	applet  string
	timeout time.Duration
	late    error
}

// pollStatus reads the applet's status until done reports so.
func pollStatus[T any](ctx context.Context, s presenter, w statusWait, done func(status T) (bool, error)) error {
	for begun := time.Now(); time.Since(begun) < w.timeout; {
		status, err := readStatus[T](ctx, s, w.applet)
		if err != nil {
			return err
		}
		if ok, err := done(status); ok || err != nil {
			return err
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
	return w.late
}

// readStatus accepts exit codes other than 0, by which neco tells the state.
func readStatus[T any](ctx context.Context, s presenter, applet string) (status T, err error) {
	out, err := s.newCommand(ctx, applet, "status", "--format", "json").Output()
	if _, told := errors.AsType[*exec.ExitError](err); err != nil && (!told || len(out) == 0) {
		return status, fmt.Errorf("cannot run %s status: %w", applet, err)
	}
	err = json.Unmarshal(out, &status)
	return status, wrap.Error(err, "cannot read what %s status prints", applet)
}

// changePrinter prints lines that have a name each as they change, with the time since it began.
type changePrinter struct {
	presenter
	nameWidth int
	colour    func(line string) string
	begun     time.Time
	seen      map[string]string
}

func (s presenter) newChangePrinter(nameWidth int, colour func(line string) string) *changePrinter {
	return &changePrinter{presenter: s, nameWidth: nameWidth, colour: colour, begun: time.Now(), seen: map[string]string{}}
}

// print passes over empty lines.
func (p *changePrinter) print(lines map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		if line := lines[name]; line != "" && p.seen[name] != line {
			fmt.Fprintf(p.out, "  %5.1f s  %-*s %s\n", time.Since(p.begun).Seconds(), p.nameWidth, name, p.colour(line))
			p.seen[name] = line
		}
	}
}

func withoutVars(environ []string, prefixes ...string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(word string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(word, p) })
	})
}
