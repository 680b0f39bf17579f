// Package tools is the hook tools, one a file: what each asks hookapi, and what it prints.
// Parsing, help and output are those of hookenv. agent, hookenv/server and multicall import it.
package tools

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"path"
	"slices"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

//go:embed help
var manuals embed.FS

// Run runs the tool that the call names, for a hook. It never fails: whatever goes wrong is in the
// result, worded for the caller.
func Run(ctx context.Context, h hookapi.Hook, call hookenv.Call) hookenv.Result {
	if len(call.Argv) == 0 {
		return hookenv.ErrorResult(errors.New("no tool named"))
	}
	tool, ok := findTool(path.Base(call.Argv[0]))
	if !ok {
		return hookenv.ErrorResult(hookenv.UsageErrorf("unknown tool %q", call.Argv[0]))
	}
	return tool.Run(ctx, h, call)
}

// RunWithoutHook runs the tool that argv names as Tool.RunWithoutHook does; done is false
// if there is none.
func RunWithoutHook(argv []string) (r hookenv.Result, done bool) {
	tool, ok := findTool(path.Base(argv[0]))
	if !ok {
		return hookenv.Result{}, false
	}
	return tool.RunWithoutHook(argv)
}

// All returns every hook tool, sorted by name. Symlinks are made from it.
func All() []hookenv.Tool {
	all := []hookenv.Tool{
		actionFail(), actionGet(), actionLog(), actionSet(), resourceGet(),
		applicationVersionSet(), closePort(), configGet(), goalState(), isLeader(), jujuLog("juju-log"), jujuLog("juju-logger"),
		jujuReboot(), leaderGet(), leaderSet(), networkGet(), openPort(), openedPorts(), relationGet(), relationIDs(),
		relationList(), relationModelGet(), relationSet(), stateDelete(), stateGet(), stateSet(), statusGet(), statusSet(), storageAdd(),
		storageGet(), storageList(), unitGet(), unitRelations(),
	}
	for i := range all {
		if all[i].Summary == "" {
			all[i].Manuals = manuals
		}
	}
	for name, summary := range unsupportedSummaries() {
		all = append(all, unsupportedTool(name, summary))
	}
	slices.SortFunc(all, func(a, b hookenv.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Supported reports whether a tool does its work in this version.
func Supported(name string) bool {
	_, listed := unsupportedSummaries()[name]
	_, exists := findTool(name)
	return exists && !listed
}

func findTool(name string) (hookenv.Tool, bool) {
	for _, tool := range All() {
		if tool.Name == name {
			return tool, true
		}
	}
	return hookenv.Tool{}, false
}
