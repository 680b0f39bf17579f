package multicall

import (
	"fmt"

	"bijou/hookenv"
	"bijou/hookenv/client"
	"bijou/multicall/console"
)

// hookTools are the applets that hooks call. Inside a hook they never come
// here: hookenv/client has answered and ended the process before main.
func hookTools() []Applet {
	var applets []Applet
	for _, tool := range hookenv.Tools() {
		applets = append(applets, Applet{tool.Name, "hook tool: " + tool.Summary, runHookTool})
	}
	return applets
}

// hookToolNames lists the hook tools.
func hookToolNames() []string {
	var names []string
	for _, tool := range hookenv.Tools() {
		names = append(names, tool.Name)
	}
	return names
}

// runHookTool explains the tool, or speaks to the agent that the arguments name
// (--socket, --client-id).
func runHookTool(c call) int {
	for _, a := range c.args {
		if a == "--" {
			break
		}
		if a == "--help" || a == "-h" {
			fmt.Fprint(c.streams.Out, hookenv.Help(c.name))
			return console.ExitOK
		}
	}
	return client.Run(append([]string{c.name}, c.args...))
}
