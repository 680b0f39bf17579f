// Package multicall is the composition root: one executable that is every
// applet, chosen by the name it is called by (or by its first argument).
//
// It fits the roles together: table.go lists the applets, and its rooms have the processes that are
// made of several roles (agents, necodaemon) and the providers. What the applets do lives in the
// roles. Only main, and test binaries, import it.
package multicall

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/dashboard"
	"bijou/multicall/juju"
	"bijou/multicall/neco"
	"bijou/multicall/necodaemon"
	"bijou/multicall/tour"
)

// Options give a test main what users do not get.
type Options struct {
	// Fault is called at named points of the work, so that it can kill the process
	// there; nil: nothing is.
	Fault func(point string)
}

// Main runs the applet that argv names and returns its exit code. argv[0] is the name
// called by; `bijou APPLET ...` is the applet too.
func Main(argv []string, o Options) int {
	path, name := "", "bijou"
	if len(argv) > 0 {
		path, name, argv = argv[0], filepath.Base(argv[0]), argv[1:]
	}
	c := applet.Call{Name: name, Args: argv, Streams: console.Process(), Applets: appletNames(), Fault: o.Fault}
	if a, ok := findApplet(name); ok {
		return a.Run(c)
	}
	// A renamed or freshly built binary (bijou-linux-amd64, a.out) is bijou itself; a link
	// under a name that is none is a slip.
	if applet.IsBijouName(name) || len(argv) == 0 && !isLink(path) || len(argv) > 0 && isBijouArg(argv[0]) {
		c.Name = "bijou"
		return runBijou(c)
	}
	return reportUnknown(c, name)
}

// Has reports whether there is an applet of that name.
func Has(name string) bool {
	_, ok := findApplet(name)
	return ok
}

func isLink(argv0 string) bool {
	path, _ := exec.LookPath(argv0)
	_, err := os.Readlink(path)
	return err == nil
}

func isBijouArg(arg string) bool {
	return Has(arg) || strings.HasPrefix(arg, "-")
}

func reportUnknown(c applet.Call, name string) int {
	hint := "bijou --list names all applets"
	if meant := console.NearestWord(name, slices.Concat(appletNames(), ownCommands())); meant != "" {
		hint = "did you mean " + meant + "?"
	}
	console.Report(c.Streams.Err, console.Hint(fmt.Errorf("there is no applet %q", name), hint))
	return console.ExitUnknown
}

func runNeco(c applet.Call) int {
	parts, err := necoParts()
	if err != nil {
		return console.Report(c.Streams.Err, err)
	}
	ctx, stop := applet.BeginCommand(c)
	defer stop()
	parts.OpenEnvironment = func(ctx context.Context, s console.Streams) (*dashboard.Environment, error) {
		return juju.OpenEnvironment(ctx, s, jujuParts())
	}
	return neco.Main(ctx, c.Streams, parts, c.Args)
}

func necoParts() (neco.Parts, error) {
	manifest, version, err := necodaemon.OwnManifest()
	return neco.Parts{Version: version, Manifest: manifest, Server: necodaemon.Server{}, Demo: tour.Demo}, err
}
