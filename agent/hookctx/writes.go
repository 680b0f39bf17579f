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

// AddTo writes what the hook has written, as part of the transaction that makes the hook
// done, and returns what that changes. The hook ends with the call, as by Close; a
// transaction that is rerun may call it again. A relation that is gone is ignored.
func (c *Context) AddTo(tx *state.Tx) ([]Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if err := errors.Join(c.addUnitAndLeaderState(tx), c.addSecrets(tx), c.addStorage(tx)); err != nil {
		return nil, err
	}
	var all []Change
	for _, at := range slices.SortedFunc(maps.Keys(c.nodes), compareNodes) {
		changed, err := mergeNode(tx, at, c.nodes[at].diff())
		if err != nil {
			return nil, err
		}
		for _, ch := range changed {
			all = append(all, Change{at, ch})
		}
		if at.Service != "" && len(changed) > 0 {
			if err := c.notifyMembers(tx, at); err != nil {
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

// notifyMembers has the other members run their changed hooks for a change of a service's
// own settings, by touching the settings of the leader who has made it.
func (c *Context) notifyMembers(tx *state.Tx, at hookapi.Node) (err error) {
	by := c.opts.Facts.Unit
	if serviceOf(by) != at.Service {
		if by, err = tx.Leader(at.Service); err != nil || by == "" {
			return err
		}
	}
	return tx.TouchSettings(at.Relation, by)
}

// CountChangedNodes returns in how many settings nodes the hook has changed something.
func (c *Context) CountChangedNodes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, node := range c.nodes {
		if len(node.diff()) > 0 {
			n++
		}
	}
	return n
}

func compareNodes(a, b hookapi.Node) int {
	return cmp.Or(cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Service, b.Service))
}

func mergeNode(tx *state.Tx, at hookapi.Node, changes map[string]*string) (changed []state.Change, err error) {
	if len(changes) == 0 {
		return nil, nil
	}
	if at.Service != "" {
		changed, err = tx.MergeAppSettings(at.Relation, at.Service, changes)
	} else {
		changed, err = tx.MergeSettings(at.Relation, at.Unit, changes)
	}
	return changed, state.IgnoreNotFound(err)
}

// maxLoggedValue bounds how much of a value is logged, in bytes.
const maxLoggedValue = 200

// String words the change for the log, in a form in which sanitize.HideSecrets finds
// secrets.
func (c Change) String() string {
	if c.New == nil {
		return fmt.Sprintf("setting removed: %q (was %s)", c.Key, formatValue(c.Old))
	}
	return fmt.Sprintf("setting changed: %q=%s (was %s)", c.Key, formatValue(c.New), formatValue(c.Old))
}

func formatValue(value *string) string {
	switch {
	case value == nil:
		return "unset"
	case len(*value) > maxLoggedValue:
		shown := sanitize.HideSecrets(*value) // nothing tells that half a URL holds a password
		return fmt.Sprintf("%q... (%d bytes)", strings.ToValidUTF8(shown[:min(len(shown), maxLoggedValue)], ""), len(*value))
	}
	return fmt.Sprintf("%q", *value)
}
