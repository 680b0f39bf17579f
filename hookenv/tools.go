package hookenv

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"

	"bijou/hookenv/hookapi"
)

// Run runs the tool that the call names, for a hook. It never fails: whatever goes wrong is in the
// result, worded for the caller.
func Run(ctx context.Context, h hookapi.Hook, call Call) Result {
	if len(call.Argv) == 0 {
		return errorResult(errors.New("no tool named"))
	}
	tool, ok := findTool(path.Base(call.Argv[0]))
	if !ok {
		return errorResult(usagef("unknown tool %q", call.Argv[0]))
	}
	return tool.Run(ctx, h, call)
}

// RunWithoutHook runs the tool that argv names as Tool.RunWithoutHook does; done is false
// if there is none.
func RunWithoutHook(argv []string) (r Result, done bool) {
	tool, ok := findTool(path.Base(argv[0]))
	if !ok {
		return Result{}, false
	}
	return tool.RunWithoutHook(argv)
}

// Tools returns every hook tool, sorted by name. Symlinks are made from it.
func Tools() []Tool {
	all := []Tool{
		actionFail(), actionGet(), actionLog(), actionSet(), resourceGet(),
		applicationVersionSet(), closePort(), configGet(), goalState(), isLeader(), jujuLog("juju-log"), jujuLog("juju-logger"),
		jujuReboot(), leaderGet(), leaderSet(), networkGet(), openPort(), openedPorts(), relationGet(), relationIDs(),
		relationList(), relationModelGet(), relationSet(), stateDelete(), stateGet(), stateSet(), statusGet(), statusSet(), storageAdd(),
		storageGet(), storageList(), unitGet(), unitRelations(),
	}
	for name, summary := range unsupportedSummaries() {
		all = append(all, unsupportedTool(name, summary))
	}
	slices.SortFunc(all, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return all
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
