package multicall

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"bijou/hookenv/client/early"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/install"
	"bijou/multicall/tour"
)

// bijouGrammar is the command line of `bijou` itself. Applets are dispatched before it is read.
type bijouGrammar struct {
	List       bool            `help:"Print the applets' names, one a line."`
	Help       helpCmd         `cmd:"" help:"Explain bijou, or one applet."`
	Version    versionCmd      `cmd:"" help:"Print bijou's version."`
	Install    install.Command `cmd:"" help:"Make a link for every applet."`
	Uninstall  install.Removal `cmd:"" help:"Remove what install has made."`
	Quickstart tour.Quickstart `cmd:"" help:"Deploy two related example charms and show what happens."`
	Completion completionCmd   `cmd:"" help:"Print what has a shell complete commands, options and names."`
	Complete   completeCmd     `cmd:"" hidden:""`
}

// runBijou runs one of bijou's own commands, or an applet.
func runBijou(c applet.Call) int {
	if len(c.Args) == 0 {
		c.Args = []string{"help"}
	}
	if c.Args[0] == "--version" {
		c.Args = []string{"version"}
	}
	first := c.Args[0]
	if a, ok := findApplet(first); ok {
		c.Name, c.Args = first, c.Args[1:]
		return a.Run(c)
	}
	if first == "--list" {
		fmt.Fprintln(c.Streams.Out, strings.Join(appletNames(), "\n"))
		return console.ExitOK
	}
	if !strings.HasPrefix(first, "-") && !slices.Contains(ownCommands(), first) {
		return reportUnknown(c, first)
	}
	return runOwnCommand(c)
}

func bijouCommand() console.Command {
	return console.Command{Name: "bijou", Grammar: &bijouGrammar{}, Help: helpFiles}
}

func runOwnCommand(c applet.Call) int {
	parsed, err := console.Parse(c.Streams, bijouCommand(), c.Args)
	if err == nil {
		err = parsed.Run(&c, c.Streams)
	}
	if code := new(exitCode); errors.As(err, code) {
		return int(*code)
	}
	return console.Report(c.Streams.Err, err)
}

// exitCode is an error that was reported already and only carries the exit code.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ownCommands returns the words of bijouGrammar, for suggestions and dispatch.
func ownCommands() []string {
	return []string{"help", "version", "install", "uninstall", "quickstart", "completion", "complete"}
}

type versionCmd struct{}

// Run prints the version, and what the binary was built with and for.
func (versionCmd) Run(s console.Streams) error {
	_, err := fmt.Fprintf(s.Out, "%s (commit %s, %s, %s/%s)\nearly client: %s\n", applet.Version, buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		map[bool]string{true: "yes", false: "no"}[early.Entered()])
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
