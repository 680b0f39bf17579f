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
		{Name: "action-fail", Prepare: hookenv.WithoutOptions(failAction)},
		{Name: "action-get", Prepare: hookenv.WithOutput(printParameters)},
		{Name: "action-log", Prepare: hookenv.WithoutOptions(logAction)},
		{Name: "action-set", Prepare: hookenv.WithoutOptions(setResults)},
		{Name: "application-version-set", Prepare: hookenv.WithoutOptions(setVersion)},
		{Name: "close-port", Prepare: prepareClosePort},
		{Name: "config-get", Prepare: prepareConfigGet},
		{Name: "goal-state", Prepare: prepareGoalState},
		{Name: "is-leader", Prepare: hookenv.WithOutput(printLeadership)},
		{Name: "juju-log", Prepare: prepareJujuLog, WorksWithoutHook: true},
		{Name: "juju-logger", Prepare: prepareJujuLog, WorksWithoutHook: true},
		{Name: "juju-reboot", Prepare: prepareJujuReboot},
		{Name: "leader-get", Prepare: hookenv.WithOutput(printLeaderSettings)},
		{Name: "leader-set", Prepare: withPairs(setLeaderSettings)},
		{Name: "network-get", Prepare: prepareNetworkGet},
		{Name: "open-port", Prepare: prepareOpenPort},
		{Name: "opened-ports", Prepare: prepareOpenedPorts},
		{Name: "relation-get", Prepare: prepareRelationGet},
		{Name: "relation-ids", Prepare: hookenv.WithOutput(printRelationIDs)},
		{Name: "relation-list", Prepare: prepareRelationList},
		{Name: "relation-model-get", Prepare: prepareRelationModelGet},
		{Name: "relation-set", Prepare: prepareRelationSet},
		{Name: "resource-get", Prepare: hookenv.WithoutOptions(getResource)},
		{Name: "secret-add", Prepare: prepareSecretAdd},
		{Name: "secret-get", Prepare: prepareSecretGet},
		{Name: "secret-grant", Prepare: prepareSecretGrant},
		{Name: "secret-ids", Prepare: prepareSecretIDs},
		{Name: "secret-info-get", Prepare: prepareSecretInfoGet},
		{Name: "secret-remove", Prepare: prepareSecretRemove},
		{Name: "secret-revoke", Prepare: prepareSecretRevoke},
		{Name: "secret-set", Prepare: prepareSecretSet},
		{Name: "state-delete", Prepare: hookenv.WithoutOptions(deleteState)},
		{Name: "state-get", Prepare: prepareStateGet},
		{Name: "state-set", Prepare: withPairs(setState)},
		{Name: "status-get", Prepare: prepareStatusGet},
		{Name: "status-set", Prepare: prepareStatusSet},
		{Name: "storage-add", Prepare: hookenv.WithoutOptions(addStorage)},
		{Name: "storage-get", Prepare: prepareStorageGet},
		{Name: "storage-list", Prepare: hookenv.WithOutput(listStorage)},
		{Name: "unit-get", Prepare: hookenv.WithOutput(printAddress)},
		{Name: "unit-relations", Prepare: prepareUnitRelations},
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
