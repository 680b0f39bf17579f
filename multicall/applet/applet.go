// Package applet describes applets and their calls. It also finds this process's executable, and sets up its log.
package applet

import (
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

// Version is bijou's own version, as `bijou version` prints it. In a release, the linker sets it (.ci/release).
var Version = "0.2.0"

// Applet is one name under which this binary can be called.
type Applet struct {
	Name    string
	Summary string // one line for `bijou help`; empty for hook tools, whose manuals contain it
	Run     func(Call) int
}

// Call is one call of an applet.
type Call struct {
	Name    string   // the applet's name
	Args    []string // without the name
	Streams console.Streams
	Applets []string           // the names of all applets, for their symlinks
	Fault   func(point string) // called at named points, for tests; can be nil

	// AgentState is for tests. Unless it is nil, the agents of a machine use the state that it returns, instead of
	// the state that their process has opened.
	AgentState func(opened *state.State, machine string) *state.State
}

// StateOfAgents returns the state that the agents of a machine must use.
func (c Call) StateOfAgents(opened *state.State, machine string) *state.State {
	if c.AgentState == nil {
		return opened
	}
	return c.AgentState(opened, machine)
}

// commandGCPercent is large enough for most commands to end before their first garbage collection.
const commandGCPercent = 400

// BeginCommand prepares a command that an operator waits for. It sends the log to the call's stderr, and delays the first
// garbage collection. ctx is done after SIGINT or SIGTERM. The caller must call stop when the command ends.
func BeginCommand(c Call) (ctx context.Context, stop func()) {
	SetLogOutput(c.Streams.Err)

	// The first garbage collection frees the unused array, and so restores the usual percentage.
	usual := debug.SetGCPercent(commandGCPercent)
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual)

	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// ExecutablePath returns the path of the running binary.
func ExecutablePath() (string, error) { return findExecutable(os.Executable, os.Args[0]) }

// findExecutable returns the path of this program. It calls executable, which is [os.Executable] except in tests.
// If that fails, as it does without /proc, it looks up argv0, the path or the name on PATH under which the program was
// called. If it cannot find argv0 either, its error wraps that of executable.
func findExecutable(executable func() (string, error), argv0 string) (string, error) {
	path, err := executable()
	if err == nil {
		return path, nil
	}

	if called, lookErr := exec.LookPath(argv0); lookErr == nil {
		called, lookErr = filepath.EvalSymlinks(called)
		if lookErr == nil {
			return filepath.Abs(called)
		}
	}

	return "", fmt.Errorf("cannot find the running binary, or %q: %w", argv0, err)
}

// IsSameFile reports whether both paths exist and lead to the same file.
func IsSameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// FindOther looks on PATH for a program called name that is not a version of this program. It returns its path, or
// "" if it finds none. first reports whether a shell finds that program before this one. It is also true if PATH
// has that program, but no version of this program under that name.
func FindOther(name string) (path string, first bool) {
	own, err := ExecutablePath()
	if err != nil {
		return "", false
	}

	first = true
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if !strings.Contains(path, "/") {
			path = "./" + path // LookPath looks for a bare name on PATH
		}
		found, err := exec.LookPath(path)
		if err != nil {
			// There is no such program in this directory.
			continue
		}

		target, _ := os.Readlink(found) // empty for a file that is not a symlink
		isThisProgram := IsSameFile(found, own) || IsBijouName(filepath.Base(target))
		if !isThisProgram {
			return found, first
		}
		first = false
	}

	return "", false
}

// IsBijouName reports whether a file called name counts as a version of this program.
func IsBijouName(name string) bool {
	return strings.HasPrefix(name, "bijou")
}

// allParts is the word in BIJOU_DEBUG that enables debug lines of every logger, with or without a part.
const allParts = "all"

// SetLogOutput sends this process's log to w. BIJOU_DEBUG=amp,store,uniter enables debug lines of these
// parts. A logger names its part by With("part", NAME). The word all enables all parts.
func SetLogOutput(w io.Writer) { slog.SetDefault(newLogger(w)) }

// newLogger returns a logger that writes to w, hides secrets, and reads BIJOU_DEBUG.
func newLogger(w io.Writer) *slog.Logger {
	inner := slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: hideSecrets})
	return slog.New(newLogHandler(inner, os.Getenv("BIJOU_DEBUG")))
}

// hideSecrets returns the attribute of a log line with the secrets in its text hidden.
func hideSecrets(_ []string, a slog.Attr) slog.Attr {
	// Values of other kinds, such as numbers and times, contain no secrets.
	if k := a.Value.Kind(); k != slog.KindString && k != slog.KindAny {
		return a
	}

	value := a.Value.String()
	if hidden := text.HideSecrets(value); hidden != value {
		a.Value = slog.StringValue(hidden)
	}
	return a
}

// logHandler forwards log lines to a handler. It drops debug lines, except those of the enabled parts.
type logHandler struct {
	slog.Handler
	parts map[string]bool // the parts whose debug lines are logged
	debug bool            // whether debug lines of this logger are logged
}

// newLogHandler returns a handler that forwards to inner. parts are the words of BIJOU_DEBUG, separated by commas.
func newLogHandler(inner slog.Handler, parts string) logHandler {
	h := logHandler{Handler: inner, parts: map[string]bool{}}
	for _, part := range strings.Split(parts, ",") {
		h.parts[strings.TrimSpace(part)] = true
	}
	h.debug = h.parts[allParts]
	return h
}

// Enabled reports whether lines of this level are logged. Package slog calls it before it formats a line, so
// that disabled parts cost nothing.
func (h logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || h.debug
}

// WithAttrs returns a handler that adds the attributes to each line. The attribute "part" names the part of the
// program to which the logger belongs, and so decides whether its debug lines are logged. If there are several, the
// last one counts.
func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "part" {
			h.debug = h.parts[allParts] || h.parts[a.Value.String()]
		}
	}

	h.Handler = h.Handler.WithAttrs(attrs)
	return h
}

// WithGroup applies WithGroup to the inner handler.
func (h logHandler) WithGroup(name string) slog.Handler {
	h.Handler = h.Handler.WithGroup(name)
	return h
}
