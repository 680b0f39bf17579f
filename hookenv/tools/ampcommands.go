package tools

import (
	"context"
	"errors"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// Target names the settings node that an AMP command of Python Juju means: a unit's in a relation.
type Target struct {
	Relation string // any VALUE of -r; empty: the implied relation
	Unit     string
}

// ErrNoKey is Python Juju's KeyError: the node has no such setting.
var ErrNoKey = errors.New("no such setting")

// GetSetting answers Python Juju's AMP command get. Its error is ErrNoKey, or says what is wrong
// with the target.
func GetSetting(ctx context.Context, h hookapi.Hook, target Target, key string) (string, error) {
	node, err := target.resolveNode(ctx, h)
	if err != nil {
		return "", err
	}
	settings, err := readNode(ctx, h, node)
	if err != nil {
		return "", err
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
	return writeNode(ctx, h, node, changes)
}

// ListRelationIDs returns the ids of the local unit's relations, as its dialect writes them.
func ListRelationIDs(ctx context.Context, h hookapi.Hook) ([]string, error) {
	f := h.Facts()
	if f.Unit == "" {
		return nil, hookenv.UsageErrorf("no unit specified: run juju do with --unit")
	}
	relations, err := listRelations(ctx, h, f.Unit)
	ids := []string{}
	for _, r := range relations {
		ids = append(ids, formatRelationID(f.Dialect, r, f.Service))
	}
	return ids, err
}

func (t Target) resolveNode(ctx context.Context, h hookapi.Hook) (hookapi.Node, error) {
	if !isUnit(t.Unit) {
		return hookapi.Node{}, hookenv.UsageErrorf("invalid unit name %q", t.Unit)
	}
	w := relationFlag{value: t.Relation}
	if t.Relation != "" {
		w.option = "relation_id"
	}
	inv := &hookenv.Invocation{Hook: h, Facts: h.Facts()}
	if err := w.checkRelation(ctx, inv); err != nil {
		return hookapi.Node{}, err
	}
	id, err := w.resolveRelation(ctx, inv, t.Unit)
	return hookapi.Node{Relation: id, Unit: t.Unit}, err
}
