package multicall

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"bijou/agent/hookexec"
	"bijou/multicall/console"
	"bijou/multicall/home"
)

// jujudGrammar is the command line of jujud.
type jujudGrammar struct {
	Version struct{} `cmd:"" help:"Print the version of Juju that charms see."`
}

const jujudSummary = `Answers charms that ask which Juju they run under.

Examples:
  jujud version`

// relinkJujud has the links of machines of this environment, by which charms call jujud, lead
// to the binary that runs now: others are removed one day.
func relinkJujud(e home.Environment, tools string) {
	links, _ := filepath.Glob(jujudGlob)
	for _, link := range links {
		to, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(to, filepath.Join(e.Dir, "tools")+"/") || filepath.Dir(to) == tools {
			continue
		}
		if err := home.Symlink(filepath.Join(tools, "jujud"), link); err != nil {
			slog.Warn("a link for charms leads to a binary of before", "link", link, "error", err)
		}
	}
}

// runJujud is `jujud version`.
func runJujud(c call) int {
	var grammar jujudGrammar
	_, err := console.Parse(c.streams, console.Command{Name: "jujud", Summary: jujudSummary, Grammar: &grammar}, c.args)
	if err != nil {
		return console.Report(c.streams.Err, err)
	}
	fmt.Fprintln(c.streams.Out, cmp.Or(os.Getenv("JUJU_VERSION"), hookexec.JujuVersion)+"-bijou")
	return console.ExitOK
}
