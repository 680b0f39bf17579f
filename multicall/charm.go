package multicall

import (
	"bijou/agent/hook"
	"bijou/hookenv/tools"
	"bijou/multicall/applet"
	"bijou/multicall/author"
	"bijou/multicall/author/proof"
	"bijou/multicall/console"
)

// runCharm runs the applet charm. It gives package author the hook tools and hooks that charms can use.
func runCharm(c applet.Call) int {
	ctx, stop := applet.BeginCommand(c)
	defer stop()
	binary, err := applet.ExecutablePath()
	if err != nil {
		return console.Report(c.Streams.Err, err)
	}

	rules := proof.Rules{Tools: hookToolNames(), CheckCall: tools.CheckCall, Hooks: hook.Names}
	return author.Main(ctx, c.Streams, author.Parts{Rules: rules, Applets: c.Applets, Binary: binary}, c.Args)
}
