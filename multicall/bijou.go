package multicall

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/tour"
)

// bijouGrammar is the command line of `bijou` itself. Applets are dispatched before it is
// read.
type bijouGrammar struct {
	List       bool            `help:"Print the applets' names, one a line."`
	Help       helpCmd         `cmd:"" help:"Explain bijou, or one applet."`
	Version    versionCmd      `cmd:"" help:"Print bijou's version."`
	Install    installCmd      `cmd:"" help:"Make a link for every applet."`
	Quickstart tour.Quickstart `cmd:"" help:"Deploy two related example charms and show what happens."`
}

const bijouSummary = `One binary that is an early-Juju deployment: call it by an applet's name, or as "bijou APPLET ...".

Examples:
  bijou quickstart            see two charms deployed and related, in a minute
  bijou install --dir ~/bin   link every applet there
  bijou help relation-get     explain one applet
  bijou juju status           an applet without a link`

// runBijou runs one of bijou's own commands, or an applet.
func runBijou(c call) int {
	if len(c.args) == 0 {
		c.args = []string{"help"}
	}
	if c.args[0] == "--version" {
		c.args = []string{"version"}
	}
	first := c.args[0]
	if applet, ok := findApplet(first); ok {
		return applet.run(call{name: first, args: c.args[1:], streams: c.streams, options: c.options})
	}
	if first == "--list" {
		fmt.Fprintln(c.streams.Out, strings.Join(appletNames(), "\n"))
		return console.ExitOK
	}
	if !strings.HasPrefix(first, "-") && !slices.Contains(ownCommands(), first) {
		return reportUnknown(c, first)
	}
	return runOwnCommand(c)
}

func runOwnCommand(c call) int {
	var grammar bijouGrammar
	parsed, err := console.Parse(c.streams, console.Command{Name: "bijou", Summary: bijouSummary, Grammar: &grammar}, c.args)
	if err == nil {
		err = parsed.Run(&c, c.streams)
	}
	if code := new(exitCode); errors.As(err, code) {
		return int(*code)
	}
	return console.Report(c.streams.Err, err)
}

// exitCode is an error that was reported already and only carries the exit code.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ownCommands returns the words of bijouGrammar, for suggestions and dispatch.
func ownCommands() []string { return []string{"help", "version", "install", "quickstart"} }

type versionCmd struct{}

// Run prints the version, and what the binary was built with and for.
func (versionCmd) Run(s console.Streams) error {
	_, err := fmt.Fprintf(s.Out, "%s (commit %s, %s, %s/%s)\n", Version, buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

func buildCommit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}

func executablePath() (string, error) { return findExecutable(os.Executable, os.Args[0]) }

// findExecutable falls back on the name that the program was called by, as where there is
// no /proc.
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
