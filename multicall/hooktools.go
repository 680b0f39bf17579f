package multicall

import (
	"bijou/hookenv"
	"bijou/hookenv/client"
)

// hookToolApplets do not run inside a hook: there hookenv/client has answered and ended
// the process before main.
func hookToolApplets() []Applet {
	var applets []Applet
	for _, tool := range hookenv.Tools() {
		applets = append(applets, Applet{tool.Name, "hook tool: " + tool.Summary, runHookTool})
	}
	return applets
}

func hookToolNames() []string {
	var names []string
	for _, tool := range hookenv.Tools() {
		names = append(names, tool.Name)
	}
	return names
}

// runHookTool answers what needs no hook, or speaks to the agent that the arguments name
// (--socket, --client-id).
func runHookTool(c call) int {
	argv := append([]string{c.name}, c.args...)
	if r, done := hookenv.RunWithoutHook(argv); done {
		c.streams.Out.Write(r.Stdout)
		c.streams.Err.Write(r.Stderr)
		return r.Exit
	}
	return client.Run(argv)
}
