package multicall

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

	"bijou/hookenv/tools"
	"bijou/multicall/applet"
	"bijou/multicall/console"
)

//go:embed help
var helpFiles embed.FS

type helpCmd struct {
	Applet string `arg:"" optional:"" help:"The applet to explain."`
}

// Run prints the applet's own --help, or the table of all applets.
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
		return exitWith(runOwnCommand(applet.Call{Name: "bijou", Args: []string{h.Applet, "--help"}, Streams: c.Streams}))
	}
	return exitWith(reportUnknown(*c, h.Applet))
}

func exitWith(code int) error {
	if code == console.ExitOK {
		return nil
	}
	return exitCode(code)
}

func printOverview(s console.Streams) error {
	fmt.Fprintf(s.Out, "bijou %s\n\n%s\n\n", applet.Version, bijouCommand().HelpText("bijou"))
	own := console.NewTable("COMMAND", "")
	own.Add("", "bijou help [APPLET]", "explain bijou, or one applet")
	own.Add("", "bijou install", "make a link for every applet")
	own.Add("", "bijou --list", "print the applets' names")
	own.Add("", "bijou quickstart", "deploy two example charms and show what happens")
	own.Add("", "bijou version", "print the version")
	applets, later := console.NewTable("APPLET", ""), []string{}
	for _, a := range Applets() {
		if isHookTool(a.Name) && !tools.Supported(a.Name) {
			later = append(later, a.Name)
			continue
		}
		applets.Add("", a.Name, cmp.Or(a.Summary, tools.Summary(a.Name)))
	}
	coloured := console.CanColour(s.Out)
	if err := own.Write(s.Out, coloured); err != nil {
		return err
	}
	fmt.Fprintln(s.Out)
	if err := applets.Write(s.Out, coloured); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.Out, "\nHook tools that say that they are not supported: %s\n", strings.Join(later, ", "))
	return err
}

func isHookTool(name string) bool { return slices.Contains(hookToolNames(), name) }
