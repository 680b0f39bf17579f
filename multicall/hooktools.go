package multicall

import (
	"bijou/hookenv/client"
	"bijou/hookenv/tools"
	"bijou/multicall/applet"
)

// hookToolApplets do not run inside a hook: there hookenv/client has answered and ended
// the process before main.
func hookToolApplets() []applet.Applet {
	var applets []applet.Applet
	for _, tool := range tools.All() {
		applets = append(applets, applet.Applet{Name: tool.Name, Summary: "hook tool: " + tool.Summary(), Run: runHookTool})
	}
	return applets
}

func hookToolNames() []string {
	var names []string
	for _, tool := range tools.All() {
		names = append(names, tool.Name)
	}
	return names
}

// runHookTool answers what needs no hook, or speaks to the agent that the arguments name
// (--socket, --client-id).
func runHookTool(c applet.Call) int {
	argv := append([]string{c.Name}, c.Args...)
	if r, done := tools.RunWithoutHook(argv); done {
		c.Streams.Out.Write(r.Stdout)
		c.Streams.Err.Write(r.Stderr)
		return r.Exit
	}
	return client.Run(argv)
}
