// Package tools defines the hook tools. Each tool parses its arguments, calls hookapi, and prints the result.
//
// It does not implement options, help and output formats; hookenv does.
package tools

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

//go:embed help
var manuals embed.FS

// Run runs the tool that the call names, for a hook. The result contains any error, as the caller sees it.
func Run(ctx context.Context, h hookapi.Hook, call hookenv.Call) hookenv.Result {
	if len(call.Argv) == 0 {
		return hookenv.ErrorResult(errors.New("no tool given"))
	}

	tool, ok := findTool(path.Base(call.Argv[0]))
	if !ok {
		return hookenv.ErrorResult(hookenv.UsageErrorf("unknown tool %q", call.Argv[0]))
	}

	return tool.Run(ctx, h, call)
}

// RunWithoutHook runs the tool that argv names, as [hookenv.Tool.RunWithoutHook] does. done is also false if there is no
// such tool.
func RunWithoutHook(argv []string) (r hookenv.Result, done bool) {
	tool, ok := findTool(path.Base(argv[0]))
	if !ok {
		return hookenv.Result{}, false
	}
	return tool.RunWithoutHook(argv)
}

// CheckCall returns the arguments of a call without options, or the error with which the tool would refuse the call, as
// [hookenv.Tool.CheckWords] does. argv begins with the tool's name, which cannot be a path.
func CheckCall(argv []string) (args []string, _ error) {
	tool, ok := findTool(argv[0])
	if !ok {
		return nil, hookenv.UsageErrorf("unknown tool %q", argv[0])
	}
	return tool.CheckWords(argv[1:])
}

// All returns all hook tools, sorted by name. It includes the tools that this version does not support.
func All() []hookenv.Tool {
	all := []hookenv.Tool{
		{Name: "action-fail", Check: atMost(1), Prepare: hookenv.WithoutOptions(failAction)},
		{Name: "action-get", Check: atMost(1), Prepare: hookenv.WithOutput(printParameters)},
		{Name: "action-log", Check: atLeastOne("no message specified"), Prepare: hookenv.WithoutOptions(logAction)},
		{Name: "action-set", Prepare: hookenv.WithoutOptions(setResults)},
		{Name: "application-version-set", Check: atLeastOne("no version specified"), Prepare: hookenv.WithoutOptions(setVersion)},
		{Name: "close-port", Check: atLeastOne("no port or range specified"), CheckFirst: checkPortText, Prepare: preparePortChange(false)},
		{Name: "config-get", Prepare: prepareConfigGet},
		{Name: "credential-get", Check: unitCall(0), Prepare: prepareCredentialGet},
		{Name: "goal-state", Check: unitCall(0), Prepare: prepareGoalState},
		{Name: "is-leader", Check: unitCall(0), Prepare: hookenv.WithOutput(printLeadership)},
		{Name: "juju-log", Check: atLeastOne("no message specified"), Prepare: prepareJujuLog, WorksWithoutHook: true},
		{Name: "juju-logger", Check: atLeastOne("no message specified"), Prepare: prepareJujuLog, WorksWithoutHook: true},
		{Name: "juju-reboot", Check: unitCall(0), Prepare: prepareJujuReboot},
		{Name: "leader-get", Prepare: hookenv.WithOutput(printLeaderSettings)},
		{Name: "leader-set", Prepare: withPairs(setLeaderSettings)},
		{Name: "network-get", Check: atLeastOne("no arguments specified"), Prepare: prepareNetworkGet},
		{Name: "open-port", Check: atLeastOne("no port or range specified"), CheckFirst: checkPortText, Prepare: preparePortChange(true)},
		{Name: "opened-ports", Check: unitCall(0), Prepare: prepareOpenedPorts},
		{Name: "relation-get", Prepare: prepareRelationGet},
		{Name: "relation-ids", Check: unitCall(1), Prepare: hookenv.WithOutput(printRelationIDs)},
		{Name: "relation-list", Prepare: prepareRelationList},
		{Name: "relation-model-get", Check: atMost(0), Prepare: prepareRelationModelGet},
		{Name: "relation-set", Prepare: prepareRelationSet},
		{Name: "resource-get", Check: atLeastOne("missing required resource name"), Prepare: hookenv.WithoutOptions(getResource)},
		{Name: "secret-add", Prepare: prepareSecretAdd},
		{Name: "secret-get", Prepare: prepareSecretGet},
		{Name: "secret-grant", Prepare: prepareSecretGrant},
		{Name: "secret-ids", Prepare: prepareSecretIDs},
		{Name: "secret-info-get", Prepare: prepareSecretInfoGet},
		{Name: "secret-remove", Prepare: prepareSecretRemove},
		{Name: "secret-revoke", Prepare: prepareSecretRevoke},
		{Name: "secret-set", Prepare: prepareSecretSet},
		{Name: "state-delete", Check: unitCall(1), Prepare: hookenv.WithoutOptions(deleteState)},
		{Name: "state-get", Check: unitCall(1), Prepare: prepareStateGet},
		{Name: "state-set", Prepare: withPairs(setState)},
		{Name: "status-get", Check: unitCall(0), Prepare: prepareStatusGet},
		{Name: "status-set", Check: atLeastOne("invalid args, require <status> [message]"), CheckFirst: checkStatusWord, Prepare: prepareStatusSet},
		{Name: "storage-add", Check: atLeastOne("storage add requires a storage directive"), Prepare: hookenv.WithoutOptions(addStorage)},
		{Name: "storage-get", Prepare: prepareStorageGet},
		{Name: "storage-list", Check: atMost(1), Prepare: hookenv.WithOutput(listStorage)},
		{Name: "unit-get", Check: atLeastOne("no setting specified"), Prepare: hookenv.WithOutput(printAddress)},
		{Name: "unit-relations", Prepare: prepareUnitRelations},
	}

	for _, name := range unsupportedNames() {
		all = append(all, hookenv.Tool{Name: name, Prepare: prepareUnsupported})
	}
	for i := range all {
		all[i].Manuals = manuals
	}
	slices.SortFunc(all, func(a, b hookenv.Tool) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// unitCall returns the Check function of a tool that works only for the local unit.
func unitCall(maxArgs int) func(*hookenv.Invocation) error {
	return func(inv *hookenv.Invocation) error { return inv.CheckUnitCall(maxArgs) }
}

// atMost returns the Check function of a tool with at most maxArgs arguments.
func atMost(maxArgs int) func(*hookenv.Invocation) error {
	return func(inv *hookenv.Invocation) error { return inv.LimitArgs(maxArgs) }
}

// atLeastOne returns the Check function of a tool that needs an argument. missing is the error for a call without one.
func atLeastOne(missing string) func(*hookenv.Invocation) error {
	return func(inv *hookenv.Invocation) error {
		if len(inv.Args) == 0 {
			return hookenv.UsageErrorf("%s", missing)
		}
		return nil
	}
}

// Supported reports whether a tool exists and works in this version.
func Supported(name string) bool {
	_, exists := findTool(name)
	return exists && !slices.Contains(unsupportedNames(), name)
}

// findTool returns the tool with this name, or false if there is none.
func findTool(name string) (hookenv.Tool, bool) {
	for _, tool := range All() {
		if tool.Name == name {
			return tool, true
		}
	}
	return hookenv.Tool{}, false
}

// Summary returns a one-line description of a tool, or an empty string if there is no such tool.
func Summary(name string) string {
	if tool, ok := findTool(name); ok {
		return "hook tool: " + tool.Summary()
	}
	return ""
}

// unsupportedNames returns the names of the tools that do not work in this version. The tools still exist, since charm
// libraries call them, and handle the tools' error better than "command not found".
func unsupportedNames() []string {
	return []string{"payload-register", "payload-status-set", "payload-unregister"}
}

// prepareUnsupported prepares a tool that accepts all options and arguments, and always fails.
func prepareUnsupported(f *hookenv.FlagSet) hookenv.Runner {
	f.AcceptUnknown = true
	return func(_ context.Context, inv *hookenv.Invocation) error {
		return fmt.Errorf("%s is not supported by this version of bijou: bijou has no payloads", inv.Tool.Name)
	}
}

// classicPrefix is the beginning of a relation id in the classic dialect, such as "relation-42".
const classicPrefix = "relation-"

// reference is the parsed value of -r or --relation-id: a relation's name, its number, or both.
type reference struct {
	name      string
	id        int
	hasNumber bool
}

// parseReference parses a relation's name, number or both, such as "db", "relation-42", "42" or "db:42". The number
// follows the last colon. ok is false for any other text. A negative number results in the id -1, which no relation
// has.
func parseReference(value string) (ref reference, ok bool) {
	if id, isNumber := parseRelationNumber(strings.TrimPrefix(value, classicPrefix)); isNumber {
		return reference{id: id, hasNumber: true}, true
	}

	colon := strings.LastIndexByte(value, ':')
	if colon < 0 {
		return reference{name: value}, value != ""
	}

	id, isNumber := parseRelationNumber(value[colon+1:])
	if !isNumber {
		return reference{}, false
	}

	return reference{name: value[:colon], id: id, hasNumber: true}, true
}

// RelationID parses a relation's id in any of its forms: "relation-42", "42" or "db:42".
func RelationID(value string) (id int, ok bool) {
	ref, ok := parseReference(value)
	return ref.id, ok && ref.hasNumber && ref.id >= 0
}

// parseRelationNumber parses a number. It returns -1 for every negative number.
func parseRelationNumber(text string) (id int, ok bool) {
	n, err := strconv.Atoi(text)
	return max(n, -1), err == nil
}
