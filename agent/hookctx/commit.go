package hookctx

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/sanitize"
)

// Change is one key that a hook has changed in a settings node.
type Change struct {
	Node hookapi.Node
	state.Change
}

// Commit writes what the hook has written, as part of the transaction that makes
// it done, and says what that changes. The hook ends with the call, as by Close;
// a transaction that is rerun may call it again. A relation that is gone is
// ignored.
func (c *Context) Commit(tx *state.Tx) ([]Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if err := c.commitOwn(tx); err != nil {
		return nil, err
	}
	var all []Change
	for _, at := range slices.SortedFunc(maps.Keys(c.nodes), compareNodes) {
		changed, err := merge(tx, at, c.nodes[at].differences())
		if err != nil {
			return nil, err
		}
		for _, ch := range changed {
			all = append(all, Change{at, ch})
		}
		if at.Service != "" && len(changed) > 0 {
			if err := c.announce(tx, at); err != nil {
				return nil, err
			}
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(c.ports)) {
		if err := c.ports[unit].commit(tx, unit); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// announce has the others in the relation run their changed hooks for a change of
// a service's own settings: as if its leader's had changed, who has made it.
func (c *Context) announce(tx *state.Tx, at hookapi.Node) (err error) {
	by := c.o.Facts.Unit
	if serviceOf(by) != at.Service {
		if by, err = tx.Leader(at.Service); err != nil || by == "" {
			return err
		}
	}
	return tx.TouchSettings(at.Relation, by)
}

// Written says in how many settings nodes the hook has changed something.
func (c *Context) Written() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, node := range c.nodes {
		if len(node.differences()) > 0 {
			n++
		}
	}
	return n
}

func compareNodes(a, b hookapi.Node) int {
	return cmp.Or(cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Service, b.Service))
}

// merge writes one node's differences.
func merge(tx *state.Tx, at hookapi.Node, changes map[string]*string) (changed []state.Change, err error) {
	if len(changes) == 0 {
		return nil, nil
	}
	if at.Service != "" {
		changed, err = tx.MergeAppSettings(at.Relation, at.Service, changes)
	} else {
		changed, err = tx.MergeSettings(at.Relation, at.Unit, changes)
	}
	if errors.Is(err, state.ErrNotFound) {
		return nil, nil
	}
	return changed, err
}

// commit makes the hook's changes to what is open by now.
func (p *ports) commit(tx *state.Tx, unit string) error {
	if len(p.changes) == 0 {
		return nil
	}
	open, err := tx.Ports(unit)
	if err == nil {
		err = tx.SetPorts(unit, p.apply(open))
	}
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	return err
}

// longest is how much of a value is logged, in bytes.
const longest = 200

// String words the change for the log, in a form in which sanitize.HideSecrets finds secrets.
func (c Change) String() string {
	if c.New == nil {
		return fmt.Sprintf("setting removed: %q (was %s)", c.Key, wording(c.Old))
	}
	return fmt.Sprintf("setting changed: %q=%s (was %s)", c.Key, wording(c.New), wording(c.Old))
}

func wording(value *string) string {
	switch {
	case value == nil:
		return "unset"
	case len(*value) > longest:
		shown := sanitize.HideSecrets(*value) // nothing tells that half a URL holds a password
		return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(shown[:min(len(shown), longest)], ""), len(*value))
	}
	return fmt.Sprintf("%q", *value)
}
