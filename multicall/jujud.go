package multicall

import (
	"cmp"
	"fmt"
	"os"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/state/charm"
)

type jujudGrammar struct {
	Version struct{} `cmd:"" help:"Print the version of Juju that charms see."`
}

func runJujud(c applet.Call) int {
	var grammar jujudGrammar
	_, err := console.Parse(c.Streams, console.Command{Name: "jujud", Grammar: &grammar, Help: helpFiles}, c.Args)
	if err != nil {
		return console.Report(c.Streams.Err, err)
	}
	fmt.Fprintln(c.Streams.Out, cmp.Or(os.Getenv("JUJU_VERSION"), charm.JujuVersion)+"-bijou")
	return console.ExitOK
}
