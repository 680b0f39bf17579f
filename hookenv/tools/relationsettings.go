package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// nodeAddress returns the settings node of a unit or, with app, of the unit's service.
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

// readNode returns a copy of a node's settings. It returns errBrokenOthers for the settings of other units in a
// broken relation, and errNotReadable for settings that only the service's leader can read.
func readNode(ctx context.Context, h hookapi.Hook, node hookapi.Node) (map[string]string, error) {
	f := h.Facts()
	isBroken := f.Broken && node.Relation == f.Relation
	isOtherUnit := node.Unit != "" && node.Unit != f.Unit
	if isBroken && isOtherUnit {
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

// errNotReadable is returned if a unit that does not lead reads the settings of its service itself (--app), unless the
// relation is a peer relation. Libraries recognize the error by its text, which is the same as in Juju.
var errNotReadable = errors.New("permission denied")

// errNotLeader is returned if a unit that does not lead writes the settings of its service itself (--app).
var errNotLeader = errors.New("cannot write relation settings")

// checkUnitWrite returns an error if the hook of a modern charm would change the settings of another unit.
// Classic charms and operators can change these settings.
func checkUnitWrite(f hookapi.Facts, unit string) error {
	isHook := f.Unit != "" && !f.Operator
	if isHook && f.Dialect == hookapi.Modern && unit != f.Unit {
		return hookenv.UsageErrorf("cannot change settings of %s: a unit can change only its own", unit)
	}
	return nil
}

// writeNode changes the settings of a node. If a hook changes the settings of another unit, writeNode logs the change
// with the name of the hook's unit. The change of an operator is logged when the change is committed.
func writeNode(ctx context.Context, h hookapi.Hook, node hookapi.Node, changes map[string]*string) error {
	f := h.Facts()
	isBroken := f.Broken && node.Relation == f.Relation
	// Modern charms can change settings in a broken relation, as in Juju.
	if isBroken && f.Dialect != hookapi.Modern {
		return errBrokenChange
	}

	err := h.SetSettings(ctx, node, changes)
	if errors.Is(err, hookapi.ErrNotLeader) {
		return errNotLeader
	}
	if err != nil {
		return rewordUnknown(err, node.Unit+node.Service)
	}

	isOtherUnit := node.Unit != "" && node.Unit != f.Unit
	isHook := f.Unit != "" && !f.Operator
	if isOtherUnit && isHook {
		h.Log("INFO",
			fmt.Sprintf("%s changed settings of %s in %s%d", f.Unit, node.Unit, classicPrefix, node.Relation))
	}

	return nil
}

// IsCallerError reports whether an error of GetSetting or SetSettings is the caller's mistake, and not a failure of the
// agent.
func IsCallerError(err error) bool {
	return hookenv.IsUsageError(err) || errors.Is(err, hookapi.ErrUnknownUnit) ||
		errors.Is(err, hookapi.ErrRelationNotFound) ||
		errors.Is(err, errBrokenOthers) || errors.Is(err, errBrokenChange)
}

// Target names the settings node for an AMP command of Python Juju: the settings of a unit in a relation.
type Target struct {
	Relation string // any value that option -r accepts; empty for the implied relation
	Unit     string
}

// ErrNoKey is returned if the node does not have the setting. Python Juju calls it KeyError.
var ErrNoKey = errors.New("no such setting")

// GetSetting executes Python Juju's AMP command get. It returns ErrNoKey if the node does not have the key.
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

// SetSettings executes Python Juju's AMP command set: it merges a JSON dictionary into the node. The value
// null deletes its key.
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

// ListRelationIDs returns the ids of the local unit's relations, in the form of its dialect.
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

	// The methods of relationFlag use only these fields of a tool's invocation.
	inv := &hookenv.Invocation{Hook: h, Facts: h.Facts()}
	flag := t.asFlag()
	if err := flag.checkRelation(ctx, inv); err != nil {
		return hookapi.Node{}, err
	}
	id, err := flag.resolveRelation(ctx, inv, t.Unit)
	return hookapi.Node{Relation: id, Unit: t.Unit}, err
}

// asFlag returns the target's relation in the form of a tool's options.
func (t Target) asFlag() relationFlag {
	if t.Relation == "" {
		return relationFlag{}
	}
	return relationFlag{option: "relation_id", value: t.Relation}
}

// rewordNotFound adds the target's relation to an error about a relation that was not found.
func (t Target) rewordNotFound(h hookapi.Hook, err error) error {
	flag := t.asFlag()
	return flag.rewordNotFound(&hookenv.Invocation{Hook: h, Facts: h.Facts()}, err)
}
