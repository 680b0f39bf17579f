package multicall

import (
	"embed"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"bijou/hookenv/client/early"
	"bijou/hookenv/tools"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/install"
	"bijou/multicall/juju"
	"bijou/multicall/tour"
	"bijou/multicall/tour/site"
)

// bijouGrammar has the options of `bijou` itself. If the first argument names an applet, runBijou runs the applet
// instead of parsing these options.
type bijouGrammar struct {
	List bool `help:"Print the applets' names, one per line."`
}

// bijouCommands has the commands of `bijou` itself.
type bijouCommands struct {
	Help       helpCmd         `cmd:"" help:"Explain bijou, or one applet."`
	Version    versionCmd      `cmd:"" help:"Print bijou's version."`
	Install    install.Command `cmd:"" help:"Create a symlink for every applet."`
	Uninstall  install.Removal `cmd:"" help:"Remove the symlinks and unit files that install has created."`
	Quickstart tour.Quickstart `cmd:"" help:"Deploy two related example charms and show what happens."`
	Completion completionCmd   `cmd:"" help:"Print a script with which a shell completes commands, options and names."`
	TourServer site.Command    `cmd:"" hidden:"" help:"Run the services of the example charms; their hooks call this."`
}

// runBijou runs one of bijou's own commands, or an applet, and returns the exit code. It also answers --list, and
// a shell's call for completions. Without arguments it prints the help.
func runBijou(c applet.Call) int {
	if len(c.Args) == 0 {
		c.Args = []string{"help"}
	}
	if c.Args[0] == "--version" {
		c.Args = []string{"version"}
	}

	// Users also type the names of other tools, whose commands charm and juju accept.
	switch {
	case c.Args[0] == "charmcraft":
		c.Args[0] = "charm"
	case juju.IsOtherTool(c.Args[0]):
		c.Args = append([]string{"juju"}, c.Args...)
	}

	first := c.Args[0]
	if a, ok := findApplet(first); ok {
		c.Name = first
		c.Args = c.Args[1:]
		return a.Run(c)
	}

	if first == "--list" {
		fmt.Fprintln(c.Streams.Out, strings.Join(appletNames(), "\n"))
		return console.ExitOK
	}
	if first == console.CompleteOption {
		return complete(c)
	}

	isOption := strings.HasPrefix(first, "-")
	if !isOption && !slices.Contains(ownCommands(), first) {
		return reportUnknown(c, first, c.Args[1:])
	}

	return runOwnCommand(c)
}

// bijouCommand describes the command line of `bijou` itself, for the parser.
func bijouCommand() console.Command {
	return console.Command{Name: "bijou", Grammar: &bijouGrammar{}, Commands: &bijouCommands{}, Help: helpFiles}
}

// runOwnCommand parses and runs one of bijou's own commands. It reports an error, and returns the exit code.
func runOwnCommand(c applet.Call) int {
	parsed, err := console.Parse(c.Streams, bijouCommand(), c.Args)
	if err != nil {
		return console.Report(c.Streams.Err, err)
	}

	err = parsed.Run(&c, c.Streams)
	// An exitCode has already been reported.
	if code := new(exitCode); errors.As(err, code) {
		return int(*code)
	}

	return console.Report(c.Streams.Err, err)
}

// exitCode is an error that has already been reported and only carries the exit code.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ownCommands returns the names of the commands in bijouCommands.
func ownCommands() []string {
	return []string{"help", "version", "install", "uninstall", "quickstart", "completion", "tour-server"}
}

//go:embed completion
var completionScripts embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the completion script for the shell.
func (c completionCmd) Run(s console.Streams) error {
	script, err := completionScripts.ReadFile("completion/" + c.Shell)
	if err != nil {
		return err
	}

	_, err = s.Out.Write(script)
	return err
}

// complete prints the words that can complete the last word of a command line. If the first word is complete and names
// an applet, that applet completes the line. Otherwise bijou's own commands complete the line. For the first word,
// complete also prints the matching applets.
func complete(c applet.Call) int {
	words := c.Args[1:]
	if len(words) > 1 && Has(words[0]) {
		return runBijou(applet.Call{
			Args:    append([]string{words[0], console.CompleteOption}, words[1:]...),
			Streams: c.Streams,
		})
	}

	for _, a := range Applets() {
		if len(words) == 1 && strings.HasPrefix(a.Name, words[0]) {
			fmt.Fprintf(c.Streams.Out, "%s\t%s\n", a.Name, a.Summary)
		}
	}

	// c.Args begins with console.CompleteOption, which the parser answers.
	return runOwnCommand(c)
}

type versionCmd struct{}

// Run prints the version, the commit, Go's version, and the platform of the binary. It also prints whether the binary
// contains the early client of hook tools.
func (versionCmd) Run(s console.Streams) error {
	// A process begins in the early client if the binary contains it.
	hasEarlyClient := "no"
	if early.Entered() {
		hasEarlyClient = "yes"
	}

	_, err := fmt.Fprintf(s.Out, "%s (commit %s, %s, %s/%s)\nearly client: %s\n",
		applet.Version, buildCommit(), runtime.Version(), runtime.GOOS, runtime.GOARCH, hasEarlyClient)
	return err
}

// buildCommit returns the commit from which the binary was built, or "unknown".
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

//go:embed help
var helpFiles embed.FS

type helpCmd struct {
	Applet string `arg:"" optional:"" help:"The applet to explain."`
}

// Run prints the --help of the applet, or of bijou's own command, that h.Applet names. If h.Applet is "", it prints
// the overview. For an unknown name, it prints an error with a hint.
func (h helpCmd) Run(c *applet.Call) error {
	if h.Applet == "" {
		return printOverview(c.Streams)
	}

	a, ok := findApplet(h.Applet)
	switch {
	case ok && a.Name == "bijou":
		return exitWith(runOwnCommand(applet.Call{Name: "bijou", Args: []string{"--help"}, Streams: c.Streams}))
	case ok:
		return exitWith(a.Run(applet.Call{Name: a.Name, Args: []string{"--help"}, Streams: c.Streams}))
	case slices.Contains(ownCommands(), h.Applet):
		return exitWith(runOwnCommand(applet.Call{
			Name:    "bijou",
			Args:    []string{h.Applet, "--help"},
			Streams: c.Streams,
		}))
	}

	return exitWith(reportUnknown(*c, h.Applet, []string{"--help"}))
}

// exitWith returns the error that makes bijou exit with this code without a message, or nil for ExitOK.
func exitWith(code int) error {
	if code == console.ExitOK {
		return nil
	}
	return exitCode(code)
}

// printOverview prints bijou's version and help, a choice of its commands, and the applets, each with a line of
// help. Of the hook tools that are not supported it prints only the names.
func printOverview(s console.Streams) error {
	fmt.Fprintf(s.Out, "bijou %s\n\n%s\n\n", applet.Version, bijouCommand().HelpText("bijou"))
	commands := console.NewTable("COMMAND", "")
	commands.Add(console.Plain, "bijou help [APPLET]", "explain bijou, or one applet")
	commands.Add(console.Plain, "bijou install", "create a symlink for every applet")
	commands.Add(console.Plain, "bijou --list", "print the applets' names")
	commands.Add(console.Plain, "bijou quickstart", "deploy two example charms and show what happens")
	commands.Add(console.Plain, "bijou version", "print the version")

	applets := console.NewTable("APPLET", "")
	unsupported := []string{}
	for _, a := range Applets() {
		isHookTool := slices.Contains(hookToolNames(), a.Name)
		if isHookTool && !tools.Supported(a.Name) {
			unsupported = append(unsupported, a.Name)
			continue
		}

		summary := a.Summary
		if summary == "" { // a hook tool, whose manual contains it
			summary = tools.Summary(a.Name)
		}
		applets.Add(console.Plain, a.Name, summary)
	}

	coloured := console.CanColour(s.Out)
	if err := commands.Write(s.Out, coloured); err != nil {
		return err
	}

	fmt.Fprintln(s.Out)
	if err := applets.Write(s.Out, coloured); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.Out, "\nHook tools that are not supported, and only exit with an error: %s\n",
		strings.Join(unsupported, ", "))
	return err
}
