package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

func nodeAddress(relation int, name string, app bool) hookapi.Node {
	if app {
		return hookapi.Node{Relation: relation, Service: serviceOf(name)}
	}
	return hookapi.Node{Relation: relation, Unit: name}
}

var (
	errBrokenOthers = errors.New("cannot access other units in broken relation")
	errBrokenChange = errors.New("cannot change settings in broken relation")
)

// readNode returns a copy of a node's settings. It returns an error for the settings of other units in a
// broken relation.
func readNode(ctx context.Context, h hookapi.Hook, node hookapi.Node) (map[string]string, error) {
	f := h.Facts()
	if f.Broken && node.Relation == f.Relation && node.Unit != "" && node.Unit != f.Unit {
		return nil, errBrokenOthers
	}

	settings, err := h.Settings(ctx, node)
	if errors.Is(err, hookapi.ErrNotLeader) {
		return nil, errNotReadable
	}
	if err != nil {
		return nil, rewordUnknown(err, node.Unit+node.Service)
	}

	return maps.Clone(settings), nil
}

// errNotReadable refuses a service's own settings, but in peer relations, to its units that do
// not lead. It has Juju's words, by which libraries know it.
var errNotReadable = errors.New("permission denied")

// errNotLeader refuses a service's own settings to all of its units but the one that leads.
var errNotLeader = errors.New("cannot write relation settings")

// checkUnitWrite returns an error if the hook of a modern charm would change the settings of another unit.
// Classic charms may do that, and so may an operator.
func checkUnitWrite(f hookapi.Facts, unit string) error {
	if f.Dialect == hookapi.Modern && f.Unit != "" && !f.Operator && unit != f.Unit {
		return hookenv.UsageErrorf("cannot change settings of %s: a unit changes its own", unit)
	}
	return nil
}

// writeNode changes a node's settings. It logs a hook's change of another unit's settings with the name of
// the hook's unit. An operator's change is logged when it is committed.
func writeNode(ctx context.Context, h hookapi.Hook, node hookapi.Node, changes map[string]*string) error {
	f := h.Facts()
	if f.Broken && node.Relation == f.Relation && f.Dialect != hookapi.Modern { // Juju lets charms do it
		return errBrokenChange
	}

	err := h.SetSettings(ctx, node, changes)
	if errors.Is(err, hookapi.ErrNotLeader) {
		return errNotLeader
	}
	if err != nil {
		return rewordUnknown(err, node.Unit+node.Service)
	}

	if node.Unit != "" && node.Unit != f.Unit && f.Unit != "" && !f.Operator {
		h.Log("INFO",
			fmt.Sprintf("%s changed settings of %s in %s%d", f.Unit, node.Unit, classicPrefix, node.Relation))
	}

	return nil
}

// IsCallerError reports whether an error of GetSetting or SetSettings lies in the call; otherwise the agent
// itself has failed.
func IsCallerError(err error) bool {
	return hookenv.IsUsageError(err) || errors.Is(err, hookapi.ErrUnknownUnit) ||
		errors.Is(err, hookapi.ErrRelationNotFound) || errors.Is(err,
		errBrokenOthers) || errors.Is(err, errBrokenChange)
}

// Target names the settings node that an AMP command of Python Juju means: a unit's in a relation.
type Target struct {
	Relation string // any VALUE of -r; empty: the implied relation
	Unit     string
}

// ErrNoKey is Python Juju's KeyError: the node has no such setting.
var ErrNoKey = errors.New("no such setting")

// GetSetting answers Python Juju's AMP command get. It returns ErrNoKey if there is no such key, or an
// error about the target.
func GetSetting(ctx context.Context, h hookapi.Hook, target Target, key string) (string, error) {
	node, err := target.resolveNode(ctx, h)
	if err != nil {
		return "", err
	}
	settings, err := readNode(ctx, h, node)
	if err != nil {
		return "", target.rewordNotFound(h, err)
	}

	value, ok := settings[key]
	if !ok {
		return "", ErrNoKey
	}

	return value, nil
}

// SetSettings answers Python Juju's AMP command set: it merges a JSON dictionary into the node,
// null to delete.
func SetSettings(ctx context.Context, h hookapi.Hook, target Target, blob string) error {
	node, err := target.resolveNode(ctx, h)
	if err != nil {
		return err
	}
	if err := checkUnitWrite(h.Facts(), node.Unit); err != nil {
		return err
	}

	changes, err := hookenv.ParseJSONBlob(blob)
	if err != nil {
		return hookenv.UsageErrorf("%v", err)
	}
	if len(changes) == 0 {
		return nil
	}

	return target.rewordNotFound(h, writeNode(ctx, h, node, changes))
}

// ListRelationIDs returns the ids of the local unit's relations, as its dialect writes them.
func ListRelationIDs(ctx context.Context, h hookapi.Hook) ([]string, error) {
	f := h.Facts()
	if f.Unit == "" {
		return nil, hookenv.UsageErrorf("no unit specified: run juju do with --unit")
	}

	relations, err := listRelations(ctx, h, f.Unit)
	if err != nil {
		return nil, err
	}

	ids := []string{}
	for _, r := range relations {
		ids = append(ids, formatRelationID(f.Dialect, r, f.Service))
	}
	return ids, nil
}

// resolveNode returns the settings node that the target names.
func (t Target) resolveNode(ctx context.Context, h hookapi.Hook) (hookapi.Node, error) {
	if !isUnit(t.Unit) {
		return hookapi.Node{}, hookenv.UsageErrorf("invalid unit name %q", t.Unit)
	}

	inv := &hookenv.Invocation{Hook: h, Facts: h.Facts()}
	w := t.asFlag()
	if err := w.checkRelation(ctx, inv); err != nil {
		return hookapi.Node{}, err
	}
	id, err := w.resolveRelation(ctx, inv, t.Unit)
	return hookapi.Node{Relation: id, Unit: t.Unit}, err
}

// asFlag returns the target's relation as the flags of a tool would name it.
func (t Target) asFlag() relationFlag {
	if t.Relation == "" {
		return relationFlag{}
	}
	return relationFlag{option: "relation_id", value: t.Relation}
}

func (t Target) rewordNotFound(h hookapi.Hook, err error) error {
	w := t.asFlag()
	return w.rewordNotFound(&hookenv.Invocation{Hook: h, Facts: h.Facts()}, err)
}

func prepareRelationGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &relationGetter{}
	g.relationFlag.addFlags(f)
	f.AddBool(&g.app, "print the settings of the application, not of a unit", "app")
	f.AddFormat()
	return g.run
}

type relationGetter struct {
	relationFlag
	app  bool
	key  string // empty: all
	name string // the unit or service named, if one was
}

// run prints the settings of a unit or application in the relation.
func (g *relationGetter) run(ctx context.Context, inv *hookenv.Invocation) error {
	if err := g.parseArguments(ctx, inv); err != nil {
		return err
	}

	name := g.name
	id, err := g.resolveRelation(ctx, inv, name)
	if err != nil {
		return err
	}

	if name == "" {
		if name, err = g.defaultName(inv, id); err != nil {
			return err
		}
	}

	settings, err := readNode(ctx, inv.Hook, nodeAddress(id, name, g.app))
	if err != nil {
		return g.rewordNotFound(inv, err)
	}

	return printSettings(inv, settings, g.key)
}

// parseArguments parses [KEY [UNIT]]. The unit may be an application's name with --app.
func (g *relationGetter) parseArguments(ctx context.Context, inv *hookenv.Invocation) error {
	if err := g.checkRelation(ctx, inv); err != nil {
		return err
	}

	g.key, g.name = keyArgument(inv), inv.TrimName(inv.Arg(1))
	switch {
	case len(inv.Args) < 2 || isUnit(g.name):
		// It names no unit, or a valid one.
	case !isService(g.name):
		return hookenv.UsageErrorf("invalid unit name %q", g.name)
	case !g.app:
		return hookenv.UsageErrorf("expected unit name, got application name %q", g.name)
	}

	return inv.LimitArgs(2)
}

// defaultName returns the unit or service whose settings relation-get prints if the call names none.
func (g *relationGetter) defaultName(inv *hookenv.Invocation, id int) (string, error) {
	f := inv.Facts
	switch {
	case id == f.Relation && g.app && f.RemoteService != "":
		return f.RemoteService, nil
	case id == f.Relation && f.RemoteUnit != "":
		return f.RemoteUnit, nil
	case f.Unit == "":
		return "", inv.RequireUnitArgument()
	case inv.IsModern():
		return "", hookenv.UsageErrorf("no unit or application specified")
	case id == f.Relation && f.Broken:
		return "", errBrokenOthers
	}

	return f.Unit, nil
}

// printSettings prints the value of the key, or all settings if key is empty. It prints a missing key as
// null or nothing.
func printSettings(inv *hookenv.Invocation, settings map[string]string, key string) error {
	if key == "" {
		return inv.Print(settings)
	}
	if value, ok := settings[key]; ok {
		return inv.Print(value)
	}

	return inv.Print(nil)
}
