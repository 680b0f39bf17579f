package juju

import (
	"fmt"
	"slices"
	"strings"

	"bijou/multicall/console"
)

type helpHookCommandsCmd struct {
	Tool string `arg:"" optional:"" help:"The hook tool to explain; default: list all tools."`
}

// Run lists the hook tools, or prints the help of one tool.
func (c helpHookCommandsCmd) Run(o *operator) error { return c.explain(o, "") }

type helpActionCommandsCmd struct{ helpHookCommandsCmd }

// Run lists the hook tools for actions, or prints the help of one tool.
func (c helpActionCommandsCmd) Run(o *operator) error { return c.explain(o, "action-") }

// explain prints the help of the given hook tool. If none is given, it prints a list of the hook tools whose
// names begin with the prefix.
func (c helpHookCommandsCmd) explain(o *operator, prefix string) error {
	if c.Tool == "" {
		t := console.NewTable("TOOL", "")
		for _, name := range o.parts.HookTools {
			if strings.HasPrefix(name, prefix) {
				t.Add(console.Plain, name, o.parts.ToolSummary(name))
			}
		}
		return o.printTable("tabular", nil, t) // data is only for other formats
	}

	if !slices.Contains(o.parts.HookTools, c.Tool) {
		return console.Hint(console.Usage(fmt.Errorf("cannot explain %q: it is not a hook tool", c.Tool)),
			"juju help-hook-commands lists them")
	}

	_, err := fmt.Fprint(o.streams.Out, o.parts.ToolHelp(c.Tool))
	return err
}
