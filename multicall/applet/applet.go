// Package applet is what every applet begins with: its call, this process's executable and log. It
// does nothing of an applet's own and imports no role. multicall and its rooms import it.
package applet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"bijou/multicall/console"
)

// Version is bijou's own version, as `bijou version` prints it; .ci/release has the linker put a release's here.
var Version = "0.1.0"

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
}

// commandGCPercent lets most commands end before their first collection.
const commandGCPercent = 400

// BeginCommand prepares a command that an operator waits for. Its context is done once the
// process is told to end.
func BeginCommand(c Call) (ctx context.Context, stop func()) {
	SetLogOutput(c.Streams.Err)
	// From the first collection on memory is kept as tight as elsewhere.
	before := debug.SetGCPercent(commandGCPercent)
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, before)
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// ExecutablePath returns the path of the running binary.
func ExecutablePath() (string, error) { return findExecutable(os.Executable, os.Args[0]) }

// findExecutable falls back on the name that the program was called by, as where there is no /proc.
func findExecutable(executable func() (string, error), argv0 string) (string, error) {
	path, err := executable()
	if err == nil {
		return path, nil
	}
	if path, lookErr := exec.LookPath(argv0); lookErr == nil {
		if path, lookErr = filepath.EvalSymlinks(path); lookErr == nil {
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

// IsBijouName reports whether a file of that name is taken for this program, of whatever version.
func IsBijouName(name string) bool {
	return strings.HasPrefix(name, "bijou")
}
