package hookenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"bijou/hookenv/hookapi"
)

// Target is the settings node that an AMP command of the seed means: a unit's
// in a relation.
type Target struct {
	Relation string // any VALUE of -r; empty: the implied relation
	Unit     string
}

// ErrNoKey is the seed's KeyError: the node has no such setting.
var ErrNoKey = errors.New("no such setting")

// Get is the seed's AMP command get. ErrNoKey, or what is wrong with the target.
func Get(ctx context.Context, h hookapi.Hook, target Target, key string) (string, error) {
	node, err := target.node(ctx, h)
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

// Set is the seed's AMP command set: it merges a JSON dictionary into the
// node, null to delete.
func Set(ctx context.Context, h hookapi.Hook, target Target, blob string) error {
	node, err := target.node(ctx, h)
	if err != nil {
		return err
	}
	if err := mayWrite(h.Facts(), node.Unit); err != nil {
		return err
	}
	changes, err := parseBlob(blob)
	if err != nil {
		return usageError(err.Error())
	}
	if len(changes) == 0 {
		return nil
	}
	return writeNode(ctx, h, node, changes)
}

// Relations are the ids of the local unit's relations, as its dialect writes them.
func Relations(ctx context.Context, h hookapi.Hook) ([]string, error) {
	f := h.Facts()
	if f.Unit == "" {
		return nil, usagef("no unit specified: run juju do with --unit")
	}
	relations, err := relationsOf(ctx, h, f.Unit)
	ids := []string{}
	for _, r := range relations {
		ids = append(ids, idFor(f.Dialect, r, f.Service))
	}
	return ids, err
}

func (t Target) node(ctx context.Context, h hookapi.Hook) (hookapi.Node, error) {
	if !isUnit(t.Unit) {
		return hookapi.Node{}, usagef("invalid unit name %q", t.Unit)
	}
	w := which{value: t.Relation}
	if t.Relation != "" {
		w.option = "relation_id"
	}
	inv := &invocation{hook: h, facts: h.Facts()}
	if err := w.given(ctx, inv); err != nil {
		return hookapi.Node{}, err
	}
	id, err := w.resolve(ctx, inv, t.Unit)
	return hookapi.Node{Relation: id, Unit: t.Unit}, err
}

// parseBlob reads one JSON dictionary of texts, numbers, booleans and nulls;
// numbers stay as they are written.
func parseBlob(blob string) (map[string]*string, error) {
	if err := checkText(blob); err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	d := json.NewDecoder(strings.NewReader(blob))
	err := d.Decode(&raw)
	if errors.As(err, new(*json.UnmarshalTypeError)) || err == nil && raw == nil {
		return nil, errors.New("cannot read json_blob: it is no dictionary")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read json_blob: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("cannot read json_blob: more than one value")
	}
	if err := checkEscapes([]byte(blob)); err != nil {
		return nil, err
	}
	return changesOf(raw)
}
