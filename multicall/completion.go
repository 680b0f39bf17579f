package multicall

import (
	"embed"
	"fmt"
	"path/filepath"
	"strings"

	"bijou/multicall/console"
)

//go:embed completion
var completionScripts embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the shell's script.
func (c completionCmd) Run(s console.Streams) error {
	script, err := completionScripts.ReadFile("completion/" + c.Shell)
	if err == nil {
		_, err = s.Out.Write(script)
	}
	return err
}

// completeCmd answers the shells' scripts.
type completeCmd struct {
	Words []string `arg:"" help:"A command line up to the cursor, its first word an applet's name or a path that ends with it."`
}

// Run prints the candidates for the last word, one a line, each with a tab and its help.
func (c completeCmd) Run(s console.Streams) error {
	name, args := filepath.Base(c.Words[0]), append(c.Words[1:], make([]string, max(0, 2-len(c.Words)))...)
	if name == "bijou" && len(args) > 1 && Has(args[0]) {
		name, args = args[0], args[1:]
	}
	for _, command := range Commands() {
		if command.Name != name {
			continue
		}
		found, err := command.Complete(args)
		if err != nil {
			return err
		}
		for _, f := range found {
			fmt.Fprintf(s.Out, "%s\t%s\n", f.Word, f.Help)
		}
	}
	for _, a := range Applets() {
		if name == "bijou" && len(args) == 1 && strings.HasPrefix(a.Name, args[0]) {
			fmt.Fprintf(s.Out, "%s\t%s\n", a.Name, a.Summary)
		}
	}
	return nil
}
