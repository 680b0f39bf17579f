package multicall

import (
	"bijou/agent/hook"
	"bijou/hookenv/tools"
	"bijou/multicall/applet"
	"bijou/multicall/author"
	"bijou/multicall/author/proof"
)

func runCharm(c applet.Call) int {
	ctx, stop := applet.BeginCommand(c)
	defer stop()
	rules := proof.Rules{Tools: hookToolNames(), CheckCall: tools.CheckCall, Hooks: hook.Names}
	return author.Main(ctx, c.Streams, author.Parts{Rules: rules}, c.Args)
}
