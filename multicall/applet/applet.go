// Package applet is what every applet begins with: its call, this process's executable and log. It
// does nothing of an applet's own and imports no role. multicall and its rooms import it.
package applet

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/text"
)

// Version is bijou's own version, as `bijou version` prints it; .ci/release has the linker put a release's here.
var Version = "0.2.0"

// Applet is one name that this binary answers to.
type Applet struct {
	Name    string
	Summary string // one line for `bijou help`; of hook tools their manuals have it
	Run     func(Call) int
}

// Call is one call of an applet.
type Call struct {
	Name    string   // the applet's
	Args    []string // without the name
	Streams console.Streams
	Applets []string           // the names of all applets, for whoever links them
	Fault   func(point string) // called at named points, for tests; may be nil

	// AgentState returns the state as the agents of a machine have it, of the one that their process has
	// opened, for tests; nil: they have that one.
	AgentState func(opened *state.State, machine string) *state.State
}

// StateOfAgents returns the state that the agents of a machine are to have.
func (c Call) StateOfAgents(opened *state.State, machine string) *state.State {
	if c.AgentState == nil {
		return opened
	}
	return c.AgentState(opened, machine)
}

// commandGCPercent lets most commands end before their first collection.
const commandGCPercent = 400

// BeginCommand prepares a command that an operator waits for. Its context is done once a signal ends the
// process.
func BeginCommand(c Call) (ctx context.Context, stop func()) {
	SetLogOutput(c.Streams.Err)
	// From the first collection on memory is kept as tight as elsewhere.
	before := debug.SetGCPercent(commandGCPercent)
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, before)
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// ExecutablePath returns the path of the running binary.
func ExecutablePath() (string, error) { return findExecutable(os.Executable, os.Args[0]) }

// findExecutable returns the path of this program. Where /proc is missing, it looks for the name that the
// program was called by.
func findExecutable(executable func() (string, error), argv0 string) (string, error) {
	path, err := executable()
	if err == nil {
		return path, nil
	}

	if path, lookErr := exec.LookPath(argv0); lookErr == nil {
		path, lookErr = filepath.EvalSymlinks(path)
		if lookErr == nil {
			return filepath.Abs(path)
		}
	}

	return "", fmt.Errorf("cannot find the running binary, nor %q: %w", argv0, err)
}

// IsSameFile reports whether both paths are there and lead to one file.
func IsSameFile(a, b string) bool {
	fa, errA := os.Stat(a)
	fb, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(fa, fb)
}

// FindOther looks on PATH for another program of that name, and returns its path or "". first reports whether
// a shell finds that program before this one.
func FindOther(name string) (path string, first bool) {
	own, err := ExecutablePath()
	if err != nil {
		return "", false
	}

	first = true
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		found, err := exec.LookPath(filepath.Join(cmp.Or(dir, "."), name))
		switch to, _ := os.Readlink(found); {
		case err != nil:
			// There is no such program in this folder.
		case IsSameFile(found, own), IsBijouName(filepath.Base(to)):
			first = false
		default:
			return found, first
		}
	}

	return "", false
}

// IsBijouName reports whether a file of that name counts as this program, of any version.
func IsBijouName(name string) bool {
	return strings.HasPrefix(name, "bijou")
}

// allParts is the word of BIJOU_DEBUG for all parts, and for loggers without one.
const allParts = "all"

// SetLogOutput sends this process's log to w. BIJOU_DEBUG=amp,store,uniter enables debug
// lines of those parts, which loggers name by With("part", NAME); "all" enables all.
func SetLogOutput(w io.Writer) { slog.SetDefault(newLogger(w)) }

func newLogger(w io.Writer) *slog.Logger {
	inner := slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: hideSecrets})
	return slog.New(newLogHandler(inner, os.Getenv("BIJOU_DEBUG")))
}

func hideSecrets(_ []string, a slog.Attr) slog.Attr {
	if k := a.Value.Kind(); k != slog.KindString && k != slog.KindAny {
		return a
	}

	value := a.Value.String()
	if hidden := text.HideSecrets(value); hidden != value {
		a.Value = slog.StringValue(hidden)
	}
	return a
}

// logHandler passes log lines on to a handler. It drops debug lines, except those of the enabled parts.
type logHandler struct {
	slog.Handler
	parts map[string]bool // that are to talk
	debug bool            // this one is
}

func newLogHandler(inner slog.Handler, parts string) logHandler {
	h := logHandler{Handler: inner, parts: map[string]bool{}}
	for _, part := range strings.Split(parts, ",") {
		h.parts[strings.TrimSpace(part)] = true
	}
	h.debug = h.parts[allParts]
	return h
}

// Enabled reports whether lines of this level are logged. Slog calls it before it formats a line, so that
// disabled parts cost nothing.
func (h logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.debug
}

// WithAttrs returns a handler that knows the part of the program to which a logger belongs. The last
// attribute "part" counts.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "part" {
			h.debug = h.parts[allParts] || h.parts[a.Value.String()]
		}
	}

	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup does what the inner handler's WithGroup does.
func (h logHandler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
