package multicall

import (
	"fmt"

	"bijou/multicall/console"
)

// helpCmd is `bijou help [APPLET]`.
type helpCmd struct {
	Applet string `arg:"" optional:"" help:"The applet to explain."`
}

// Run prints the applet's own --help, or the table of all applets.
func (h helpCmd) Run(c *call) error {
	if h.Applet == "" {
		return overview(c.streams)
	}
	applet, ok := find(h.Applet)
	switch {
	case ok && applet.Name == "bijou":
		return exitWith(runOwn(call{name: "bijou", args: []string{"--help"}, streams: c.streams}))
	case ok:
		return exitWith(applet.run(call{name: applet.Name, args: []string{"--help"}, streams: c.streams}))
	case ownCommand(h.Applet):
		return exitWith(runOwn(call{name: "bijou", args: []string{h.Applet, "--help"}, streams: c.streams}))
	}
	return exitWith(unknown(*c, h.Applet))
}

// exitWith makes an exit code an error, since it was reported already.
func exitWith(code int) error {
	if code == console.ExitOK {
		return nil
	}
	return exitCode(code)
}

// overview prints what `bijou` alone prints.
func overview(s console.Streams) error {
	fmt.Fprintf(s.Out, "bijou %s: %s\n\nCommands of bijou itself: help, install, quickstart, version, --list\n\nApplets:\n", Version, bijouSummary)
	for _, a := range Applets() {
		fmt.Fprintf(s.Out, "  %-16s %s\n", a.Name, a.Summary)
	}
	return nil
}
