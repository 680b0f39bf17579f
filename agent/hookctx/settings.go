package hookctx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// node is a settings node as the hook read it, and as it stands with own writes.
type node struct {
	version   int64
	read, now map[string]string
}

func newNode(s state.Settings) *node {
	n := &node{version: s.Version, read: map[string]string{}, now: map[string]string{}}
	maps.Copy(n.read, s.Values)
	maps.Copy(n.now, s.Values)
	return n
}

// Settings returns a node's values, own writes applied.
func (c *Context) Settings(ctx context.Context, at hookapi.Node) (map[string]string, error) {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	n, err := c.node(ctx, at)
	if err != nil {
		return nil, err
	}
	return maps.Clone(n.now), nil
}

// SetSettings merges changes into a node, in this hook's eyes only.
func (c *Context) SetSettings(ctx context.Context, at hookapi.Node, changes map[string]*string) error {
	defer c.mu.Unlock()
	if err := c.enter(ctx); err != nil {
		return err
	}
	n, err := c.node(ctx, at)
	if err != nil {
		return err
	}
	if err := c.mayWriteService(ctx, at.Service); err != nil {
		return err
	}
	return n.apply(changes)
}

// apply makes changes to what the hook sees of a node.
func (n *node) apply(changes map[string]*string) error {
	if err := check(changes); err != nil {
		return err
	}
	for key, value := range changes {
		if value == nil {
			delete(n.now, key)
			continue
		}
		n.now[key] = *value
	}
	return nil
}

// check refuses at once what the commit would refuse at the end.
func check(changes map[string]*string) error {
	for key, value := range changes {
		switch {
		case key == "":
			return errors.New("cannot set a setting without a name")
		case value == nil:
		case len(*value) > state.MaxSetting:
			return fmt.Errorf("cannot set %q: its value has %d bytes, at most %d", key, len(*value), state.MaxSetting)
		case !utf8.ValidString(key+*value) || strings.ContainsRune(key+*value, 0):
			return fmt.Errorf("cannot set %q: it is not UTF-8, or has a NUL byte: encode it, as with base64", key)
		}
	}
	return nil
}

// node reads a node whole at its first use.
func (c *Context) node(ctx context.Context, at hookapi.Node) (*node, error) {
	if n, ok := c.nodes[at]; ok {
		return n, nil
	}
	r, err := c.describe(ctx, at.Relation)
	if err != nil {
		return nil, err
	}
	s, err := c.read(ctx, at)
	if errors.Is(err, state.ErrNotFound) && has(r, at) {
		err = nil
	}
	if errors.Is(err, state.ErrNotFound) {
		return nil, fmt.Errorf("%q in relation %d: %w", at.Unit+at.Service, at.Relation, hookapi.ErrUnknownUnit)
	}
	if err != nil {
		return nil, err
	}
	c.nodes[at] = newNode(s)
	return c.nodes[at], nil
}

// read reads a node from the store. Those of services exist for every end.
func (c *Context) read(ctx context.Context, at hookapi.Node) (s state.Settings, err error) {
	if at.Service != "" && !has(c.relations[at.Relation], at) {
		return s, state.ErrNotFound
	}
	err = c.view(ctx, func(v *state.View) (err error) {
		if at.Service != "" {
			s, err = v.AppSettings(at.Relation, at.Service)
		} else {
			s, err = v.Settings(at.Relation, at.Unit)
		}
		return err
	})
	return s, err
}

// has says if a node that holds nothing yet belongs to the relation.
func has(r hookapi.Relation, at hookapi.Node) bool {
	return slices.ContainsFunc(r.Ends, func(e hookapi.End) bool {
		if at.Service != "" {
			return e.Service == at.Service
		}
		return slices.Contains(e.Units, at.Unit)
	})
}

// Seen answers the version of a unit's settings, or of a service's own, that the hook
// has read; 0 if it has not read them.
func (c *Context) Seen(relation int, member string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := hookapi.Node{Relation: relation, Unit: member}
	if !strings.Contains(member, "/") {
		at = hookapi.Node{Relation: relation, Service: member}
	}
	if n, ok := c.nodes[at]; ok {
		return n.version
	}
	return 0
}

// differences are the keys whose value is not the one that was read; none for a
// node that was not.
func (n *node) differences() map[string]*string {
	changes := map[string]*string{}
	if n == nil {
		return changes
	}
	for key, value := range n.now {
		if old, ok := n.read[key]; !ok || old != value {
			changes[key] = &value
		}
	}
	for key := range n.read {
		if _, ok := n.now[key]; !ok {
			changes[key] = nil
		}
	}
	return changes
}
