package multicall

import (
	"cmp"
	"fmt"
	"os"

	"bijou/agent/hookexec"
	"bijou/multicall/applet"
	"bijou/multicall/console"
)

type jujudGrammar struct {
	Version struct{} `cmd:"" help:"Print the version of Juju that charms see."`
}

const jujudSummary = `Answers charms that ask which Juju they run under.

Examples:
  jujud version`

func runJujud(c applet.Call) int {
	var grammar jujudGrammar
	_, err := console.Parse(c.Streams, console.Command{Name: "jujud", Summary: jujudSummary, Grammar: &grammar}, c.Args)
	if err != nil {
		return console.Report(c.Streams.Err, err)
	}
	fmt.Fprintln(c.Streams.Out, cmp.Or(os.Getenv("JUJU_VERSION"), hookexec.JujuVersion)+"-bijou")
	return console.ExitOK
}
