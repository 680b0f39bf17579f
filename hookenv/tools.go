package hookenv

import (
	"cmp"
	"slices"
)

// Tools returns every hook tool, sorted by name. Symlinks are made from it.
func Tools() []Tool {
	tools := []Tool{
		actionFail(), actionGet(), actionLog(), actionSet(), resourceGet(),
		applicationVersionSet(), closePort(), configGet(), goalState(), isLeader(), jujuLog("juju-log"), jujuLog("juju-logger"),
		jujuReboot(), leaderGet(), leaderSet(), networkGet(), openPort(), openedPorts(), relationGet(), relationIDs(),
		relationList(), relationModelGet(), relationSet(), stateDelete(), stateGet(), stateSet(), statusGet(), statusSet(), storageAdd(),
		storageGet(), storageList(), unitGet(), unitRelations(),
	}
	for name, summary := range unsupportedSummaries() {
		tools = append(tools, unsupportedTool(name, summary))
	}
	slices.SortFunc(tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return tools
}

// Supported reports whether a tool does its work in this version.
func Supported(name string) bool {
	_, listed := unsupportedSummaries()[name]
	_, exists := findTool(name)
	return exists && !listed
}

func findTool(name string) (Tool, bool) {
	for _, tool := range Tools() {
		if tool.Name == name {
			return tool, true
		}
	}
	return Tool{}, false
}
