// Package multicall is the composition root. It combines all applets in one executable, which runs the applet
// of the name under which it is called, or the applet that its first argument names.
//
// Packages below multicall, such as agents and necodaemon, assemble processes from several parts. Packages outside of
// multicall do the work of the applets.
package multicall

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"bijou/hookenv/client"
	"bijou/hookenv/tools"
	"bijou/multicall/agents"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/dashboard"
	"bijou/multicall/juju"
	"bijou/multicall/neco"
	"bijou/multicall/necodaemon"
	"bijou/multicall/providers"
	"bijou/multicall/tour"
	"bijou/state"
)

// Options change the behaviour of Main in tests.
type Options struct {
	// Fault is called at named points of the work, where it can kill the process. Fault can be nil.
	Fault func(point string)
	// AgentState is the same as in [applet.Call].
	AgentState func(opened *state.State, machine string) *state.State
}

// Main runs the applet that argv[0] names, and returns its exit code. `bijou APPLET ...` also runs the applet. If
// argv[0] does not name an applet, Main runs bijou if isBijouCall recognises the call, and prints an error otherwise.
func Main(argv []string, o Options) int {
	path := ""
	name := "bijou"
	if len(argv) > 0 {
		path = argv[0]
		name = filepath.Base(argv[0])
		argv = argv[1:]
	}

	c := applet.Call{
		Name:       name,
		Args:       argv,
		Streams:    console.Process(),
		Applets:    appletNames(),
		Fault:      o.Fault,
		AgentState: o.AgentState,
	}
	if a, ok := findApplet(name); ok {
		return a.Run(c)
	}

	if isBijouCall(path, argv) {
		c.Name = "bijou"
		return runBijou(c)
	}

	// The hint does not repeat the arguments of this call.
	return reportUnknown(c, name, nil)
}

// isBijouCall reports whether a call is meant for bijou itself, although path does not have the name of an applet.
// A name such as bijou-linux-amd64 always means bijou. A binary with any other name, such as a.out, is bijou if
// its first argument is an applet or an option, or if it has no arguments. But a symlink without arguments is a
// mistake, since its name should be that of an applet. args does not include path.
func isBijouCall(path string, args []string) bool {
	switch {
	case applet.IsBijouName(filepath.Base(path)):
		return true
	case len(args) == 0:
		return !isLink(path)
	}

	return Has(args[0]) || strings.HasPrefix(args[0], "-")
}

// Has reports whether an applet called name exists.
func Has(name string) bool {
	_, ok := findApplet(name)
	return ok
}

// isLink reports whether the program was called through a symlink. argv0 can be a path or, as in a shell, a name in
// PATH.
func isLink(argv0 string) bool {
	path, _ := exec.LookPath(argv0) // empty if there is no such program, so that Readlink fails
	_, err := os.Readlink(path)
	return err == nil
}

// reportUnknown prints that no applet has this name, with a hint, and returns the exit code. If juju has a command
// with that name, the hint is the command line to type, with args. Otherwise it is the most similar name or, if no
// name is similar, how to list all applets.
func reportUnknown(c applet.Call, name string, args []string) int {
	hint := "bijou --list names all applets"
	if line := juju.CommandLine(append([]string{name}, args...)); line != "" {
		hint = "bijou " + line
	} else if similar := console.NearestWord(name, slices.Concat(appletNames(), ownCommands())); similar != "" {
		hint = "did you mean " + similar + "?"
	}

	console.Report(c.Streams.Err, console.Hint(fmt.Errorf("there is no applet %q", name), hint))
	return console.ExitUnknown
}

// runNeco runs the applet neco. Its dashboard can also show juju's current environment.
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

// necoParts returns the parts that the commands of neco need, except OpenEnvironment. It returns an error if this host's
// own manifest cannot be read.
func necoParts() (neco.Parts, error) {
	manifest, version, err := necodaemon.OwnManifest()
	return neco.Parts{Version: version, Manifest: manifest, Server: necodaemon.Server(), Demo: tour.Demo}, err
}

// Applets returns all applets, sorted by name. Symlinks, the output of `bijou --list` and the applets of test
// binaries come from this list.
func Applets() []applet.Applet {
	applets := slices.Concat(roleApplets(), providers.Applets(), hookToolApplets())
	slices.SortFunc(applets, func(a, b applet.Applet) int { return strings.Compare(a.Name, b.Name) })
	return applets
}

// roleApplets returns the applets that are neither hook tools nor providers.
func roleApplets() []applet.Applet {
	return []applet.Applet{
		{Name: "bijou", Summary: "lists, explains and installs the applets; quickstart", Run: runBijou},
		{Name: "juju", Summary: "the operator's commands: deploy, integrate, inspect, remove", Run: runJuju},
		{Name: "charm", Summary: "for those who write charms: create, proof, test, replay", Run: runCharm},
		{Name: "machine-agent", Summary: "runs the units of one machine (and, on machine 0, the provisioner)", Run: agents.RunMachineAgent},
		{Name: "unit-agent", Summary: "runs a single unit", Run: agents.RunUnitAgent},
		{Name: "provisioner", Summary: "ensures that every machine has an instance", Run: agents.RunProvisioner},
		{Name: "neco", Summary: "keeps boot servers up to date: the operator's commands", Run: runNeco},
		{Name: "neco-updater", Summary: "finds releases, and leads the boot servers through updates", Run: necodaemon.RunUpdater},
		{Name: "neco-worker", Summary: "does one boot server's part in updates", Run: necodaemon.RunWorker},
		{Name: "juju-exec", Summary: "runs a command as a unit of this machine, for programs of charms", Run: runJujuExec},
		{Name: "juju-run", Summary: "the same as juju-exec, by its name in Juju 2", Run: runJujuExec},
		{Name: "jujud", Summary: "answers `jujud version`, which some charms run", Run: runJujud},
	}
}

// findApplet returns the applet with this name, or false if there is none.
func findApplet(name string) (applet.Applet, bool) {
	applets := Applets()
	i := slices.IndexFunc(applets, func(a applet.Applet) bool { return a.Name == name })
	if i < 0 {
		return applet.Applet{}, false
	}
	return applets[i], true
}

// appletNames returns the names of all applets, sorted.
func appletNames() []string {
	var names []string
	for _, a := range Applets() {
		names = append(names, a.Name)
	}
	return names
}

// hookToolApplets returns the hook tools as applets, for calls outside of hooks and for `bijou TOOL ...`. A hook that
// calls a tool by its own name does not reach the applet, since hookenv/client runs the tool and exits before main
// begins.
func hookToolApplets() []applet.Applet {
	var applets []applet.Applet
	for _, tool := range tools.All() {
		applets = append(applets, applet.Applet{Name: tool.Name, Run: runHookTool})
	}
	return applets
}

// hookToolNames returns the names of all hook tools, sorted.
func hookToolNames() []string {
	var names []string
	for _, tool := range tools.All() {
		names = append(names, tool.Name)
	}
	return names
}

// runHookTool answers a call that needs no hook. It sends any other call to the agent whose socket the arguments or
// the environment name, and prints an error if both lack the socket or the client id.
func runHookTool(c applet.Call) int {
	argv := append([]string{c.Name}, c.Args...)
	if r, done := tools.RunWithoutHook(argv); done {
		c.Streams.Out.Write(r.Stdout)
		c.Streams.Err.Write(r.Stderr)
		return r.Exit
	}

	return client.Run(argv)
}
