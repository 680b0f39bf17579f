package hookctx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// settingsNode holds the settings of one unit or service, as the hook has read them and with the hook's own
// writes.
type settingsNode struct {
	version int64             // of the settings that the hook has read
	stored  map[string]string // as the hook has read them
	current map[string]string // with the hook's own writes
}

// newSettingsNode returns a node with the stored settings and no writes.
func newSettingsNode(s state.Settings) *settingsNode {
	current := map[string]string{}
	maps.Copy(current, s.Values)
	return &settingsNode{version: s.Version, stored: s.Values, current: current}
}

// Settings returns a node's values, with the hook's own writes applied.
func (c *Context) Settings(ctx context.Context, at hookapi.Node) (map[string]string, error) {
	return answer(ctx, c, func() (map[string]string, error) { return cloneValues(c.loadNode(ctx, at)) })
}

// cloneValues returns a copy of n's current values, or err. Its parameters are the results of a function that
// loads a node.
func cloneValues(n *settingsNode, err error) (map[string]string, error) {
	if err != nil {
		return nil, err
	}
	return maps.Clone(n.current), nil
}

// SetSettings merges changes into a node, where nil removes a key. Until the hook succeeds, only the hook
// itself sees the changes.
func (c *Context) SetSettings(ctx context.Context, at hookapi.Node, changes map[string]*string) error {
	return c.do(ctx, func() error {
		n, err := c.loadNode(ctx, at)
		if err != nil {
			return err
		}
		if err := c.requireServiceWrite(ctx, at.Service); err != nil {
			return err
		}

		return n.apply(changes)
	})
}

// apply applies changes, where nil removes a key, to the settings that this hook sees. If one change is not valid,
// it returns an error and applies none.
func (n *settingsNode) apply(changes map[string]*string) error {
	if err := checkSettings(changes); err != nil {
		return err
	}

	for key, value := range changes {
		if value == nil {
			delete(n.current, key)
			continue
		}
		n.current[key] = *value
	}

	return nil
}

// checkSettings returns an error if a key is empty, or if a key or value to set is not valid. The hook's commit
// also checks what it sets, but then the charm can no longer handle the error.
func checkSettings(changes map[string]*string) error {
	for key, value := range changes {
		if key == "" {
			return errors.New("cannot set a setting without a name")
		}
		if value == nil {
			continue // the key is removed
		}
		if err := state.CheckSetting(key, *value); err != nil {
			return err
		}
	}

	return nil
}

// loadNode returns a settings node, which it reads once. It returns an error if the hook cannot reach the node.
// Every access to a relation's settings uses loadNode, so only loadNode calls checkReach.
func (c *Context) loadNode(ctx context.Context, at hookapi.Node) (*settingsNode, error) {
	if n, ok := c.nodes[at]; ok {
		return n, nil
	}
	if err := c.checkReach(ctx, at.Relation); err != nil {
		return nil, err
	}

	s, err := c.readNode(ctx, at)
	if errors.Is(err, state.ErrNotFound) {
		// Without settings, the node of a member counts as empty. checkMember returns an error for any other node.
		err = c.checkMember(ctx, at)
	}
	if err != nil {
		return nil, err
	}

	c.nodes[at] = newSettingsNode(s)
	return c.nodes[at], nil
}

// checkMember returns [hookapi.ErrUnknownUnit] unless the node belongs to one of the services or current members
// of its relation.
func (c *Context) checkMember(ctx context.Context, at hookapi.Node) error {
	r, err := c.loadRelation(ctx, at.Relation)
	if err != nil {
		return err
	}
	if !hasNode(r, at) {
		member := at.Unit + at.Service // one of them is empty
		return fmt.Errorf("%q in relation %d: %w", member, at.Relation, hookapi.ErrUnknownUnit)
	}
	return nil
}

// readNode reads a settings node from the store. It returns [state.ErrNotFound] for a unit that has no
// settings in the relation, and for a service that is not in the relation. Each service of a relation has
// settings, which can be empty. It returns [hookapi.ErrNotLeader] if only the leader can read the service's
// settings, and the unit does not lead.
func (c *Context) readNode(ctx context.Context, at hookapi.Node) (s state.Settings, err error) {
	if at.Service == "" {
		return view(ctx, c, func(v *state.View) (state.Settings, error) {
			return v.Settings(at.Relation, at.Unit)
		})
	}

	r, err := c.loadRelation(ctx, at.Relation)
	if err != nil {
		return s, err
	}
	if !hasNode(r, at) {
		return s, state.ErrNotFound
	}
	if err := c.checkServiceRead(ctx, r, at.Service); err != nil {
		return s, err
	}

	return view(ctx, c, func(v *state.View) (state.Settings, error) {
		return v.AppSettings(at.Relation, at.Service)
	})
}

// hasNode reports whether the node belongs to one of the relation's services or current members.
func hasNode(r hookapi.Relation, at hookapi.Node) bool {
	return slices.ContainsFunc(r.Ends, func(e hookapi.End) bool {
		if at.Service != "" {
			return e.Service == at.Service
		}
		return slices.Contains(e.Units, at.Unit)
	})
}

// SeenSettings returns the version of a member's settings that the hook has read. The member is a unit or a
// service. If the hook has not read the settings, SeenSettings returns 0.
func (c *Context) SeenSettings(relation int, member string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()

	at := hookapi.Node{Relation: relation, Unit: member}
	if !strings.Contains(member, "/") {
		at = hookapi.Node{Relation: relation, Service: member}
	}
	return c.nodes[at].seenVersion()
}

// seenVersion returns the version of the settings that the hook has read. It returns 0 for a nil node.
func (n *settingsNode) seenVersion() int64 {
	if n == nil {
		return 0
	}
	return n.version
}

// diff returns the keys that the hook has changed, with their new values. The value of a deleted key is nil.
// For a nil node diff returns no changes.
func (n *settingsNode) diff() map[string]*string {
	changes := map[string]*string{}
	if n == nil {
		return changes
	}

	for key, value := range n.current {
		if old, ok := n.stored[key]; !ok || old != value {
			changes[key] = &value
		}
	}

	for key := range n.stored {
		if _, ok := n.current[key]; !ok {
			changes[key] = nil
		}
	}

	return changes
}
