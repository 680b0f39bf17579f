package multicall

import (
	"cmp"
	"fmt"
	"os"

	"bijou/agent/hookexec"
	"bijou/multicall/console"
)

type jujudGrammar struct {
	Version struct{} `cmd:"" help:"Print the version of Juju that charms see."`
}

const jujudSummary = `Answers charms that ask which Juju they run under.

Examples:
  jujud version`

func runJujud(c call) int {
	var grammar jujudGrammar
	_, err := console.Parse(c.streams, console.Command{Name: "jujud", Summary: jujudSummary, Grammar: &grammar}, c.args)
	if err != nil {
		return console.Report(c.streams.Err, err)
	}
	fmt.Fprintln(c.streams.Out, cmp.Or(os.Getenv("JUJU_VERSION"), hookexec.JujuVersion)+"-bijou")
	return console.ExitOK
}
