// Package hookctx keeps what one running hook has read (a cache) and written
// (a buffer). It implements hookapi.Hook over state.
//
// It neither runs hooks nor talks to them: agent/uniter makes one for each hook
// and commits it, hook tools ask it. Only agent/uniter and agent/do import it.
package hookctx

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/text"
)

// Options describe a hook.
type Options struct {
	State *state.State
	// Update commits what takes effect at once, whatever becomes of the hook.
	Update state.Updater
	// Facts are complete: Members are those that the hook is to see.
	Facts hookapi.Facts
	// RelationName is the implied relation's in the local charm; it describes a
	// relation that is gone from the store.
	RelationName string
	// CharmURL is the charm whose options the hook sees; empty: the service's.
	CharmURL string
	// Log gets what the hook logs.
	Log func(level, message string)
	// Action is the action that runs; nil in hooks and commands.
	Action *hookapi.Action
	// Resources is the folder that resources are fetched into; empty: none are.
	Resources string
	// SecretKeys opens and seals secrets.
	SecretKeys secret.Keeper
}

// Context is one running hook. Its methods may be called from several goroutines.
type Context struct {
	opts Options

	mu        sync.Mutex
	ended     bool
	reads     int // from the store so far
	relations map[int]hookapi.Relation
	ids       map[string][]int
	nodes     map[hookapi.Node]*settingsNode
	config    *serviceConfig
	ports     map[string]*unitPorts

	leader          *bool         // nil: nobody has asked yet
	needsLeadership bool          // the hook has written what only a leader may
	leaderSettings  *settingsNode // nil: not read
	unitState       *settingsNode // nil: not read

	secrets *secretCache // nil: not read
	storage *unitStorage // nil: not read

	said          *state.WorkloadStatus // of the unit, last; nil: nothing
	actionResults map[string]any
	actionFailure *string // why the action says that it has failed

	fetchMu sync.Mutex // of resources; never held together with mu
}

var _ hookapi.Hook = (*Context)(nil)

// New returns the context of a hook that is about to start.
func New(o Options) *Context {
	o.Facts.Members = slices.Clone(o.Facts.Members)
	return &Context{
		opts:      o,
		relations: map[int]hookapi.Relation{},
		ids:       map[string][]int{},
		nodes:     map[hookapi.Node]*settingsNode{},
		ports:     map[string]*unitPorts{},
	}
}

// Facts returns the facts about the hook, which never change.
func (c *Context) Facts() hookapi.Facts {
	f := c.opts.Facts
	f.Members = slices.Clone(f.Members)
	return f
}

// Close ends the hook: every question returns hookapi.ErrGone from now on. It is
// idempotent, and waits for questions that are being answered.
func (c *Context) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// Log writes a line to the unit's log at once. It drops the line if the hook has ended.
func (c *Context) Log(level, message string) {
	c.mu.Lock()
	ended := c.ended
	c.mu.Unlock()
	if !ended {
		c.opts.Log(level, message)
	}
}

// answer answers one question, by f, under the lock and unless the hook has ended.
func answer[T any](ctx context.Context, c *Context, f func() (T, error)) (value T, err error) {
	err = c.do(ctx, func() (err error) {
		value, err = f()
		return err
	})
	return value, err
}

// do calls f under the lock, unless the hook has ended.
func (c *Context) do(ctx context.Context, f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkOpen(ctx); err != nil {
		return err
	}
	return f()
}

// checkOpen returns an error once the hook has ended or ctx is done; c.mu is held.
func (c *Context) checkOpen(ctx context.Context) error {
	if c.ended {
		return hookapi.ErrGone
	}
	return ctx.Err()
}

// view reads once from the store; c.mu is held.
func view[T any](ctx context.Context, c *Context, read func(v *state.View) (T, error)) (value T, err error) {
	c.reads++
	err = c.opts.State.View(ctx, func(v *state.View) (err error) {
		value, err = read(v)
		return err
	})
	return value, err
}

// loadOnce returns what cached holds, and fills it by read at the first call. The caller holds c.mu.
func loadOnce[T any](ctx context.Context, c *Context, cached **T, read func(v *state.View) (*T, error)) (*T, error) {
	if *cached != nil {
		return *cached, nil
	}
	value, err := view(ctx, c, read)
	if err != nil {
		return nil, err
	}

	*cached = value
	return value, nil
}

// localUnit returns the given unit, or the local unit if none is given. It returns hookapi.ErrUnknownUnit
// if there is no local unit either.
func (c *Context) localUnit(unit string) (string, error) {
	if unit == "" {
		unit = c.opts.Facts.Unit
	}
	if unit == "" {
		return "", fmt.Errorf("there is no local unit: %w", hookapi.ErrUnknownUnit)
	}

	return unit, nil
}

// Change is one key that a hook has changed in a settings node.
type Change struct {
	Node hookapi.Node
	state.Change
}

// AddTo adds all writes of the hook to the transaction that marks the hook as done, and returns the changes
// to settings. It ignores relations that are gone. The hook ends with the call, as by Close. A transaction
// that runs again may call AddTo again.
func (c *Context) AddTo(ctx context.Context, tx *state.Tx) ([]Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	addSecrets := func(tx *state.Tx) error { return c.addSecrets(ctx, tx) }
	for _, add := range []func(*state.Tx) error{c.addUnitAndLeaderState, addSecrets, c.addStorage} {
		if err := add(tx); err != nil {
			return nil, err
		}
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

// notifyMembers makes the other members run their changed hooks after a change of a service's own settings.
// For that it touches the settings of the leader, which has made the change.
func (c *Context) notifyMembers(tx *state.Tx, at hookapi.Node) (err error) {
	by := c.opts.Facts.Unit
	if serviceOf(by) != at.Service {
		by, err = tx.Leader(at.Service)
		if err != nil || by == "" {
			return err
		}
	}

	return tx.TouchSettings(at.Relation, by)
}

// CountChangedNodes returns the number of settings nodes that the hook has changed.
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
	return cmp.Or(cmp.Compare(a.Relation, b.Relation), cmp.Compare(a.Unit, b.Unit),
		cmp.Compare(a.Service, b.Service))
}

// mergeNode writes changes to the settings of a unit or service in a relation. A relation that is gone counts
// as done.
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

// String returns the change as the log has it. text.HideSecrets finds secrets in this form.
func (c Change) String() string {
	if c.New == nil {
		return fmt.Sprintf("setting removed: %q (was %s)", c.Key, formatValue(c.Old))
	}
	return fmt.Sprintf("setting changed: %q=%s (was %s)", c.Key, formatValue(c.New), formatValue(c.Old))
}

// formatValue returns a setting's new value for the log, shortened to maxLoggedValue bytes.
func formatValue(value *string) string {
	switch {
	case value == nil:
		return "unset"
	case len(*value) > maxLoggedValue:
		shown := text.HideSecrets(*value) // nothing tells that half a URL holds a password
		if len(shown) <= maxLoggedValue {
			return fmt.Sprintf("%q", shown)
		}
		return fmt.Sprintf("%q... (%d bytes)",
			strings.ToValidUTF8(shown[:min(len(shown), maxLoggedValue)], ""), len(*value))
	}

	return fmt.Sprintf("%q", *value)
}
