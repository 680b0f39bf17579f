// Package hookctx implements [hookapi.Hook] over the state, for one running hook. A [Context] caches what the
// hook reads, and buffers what it writes until the hook succeeds.
//
// The package does not run hooks. agent/uniter and agent/do create a Context for each hook, and commit its
// writes with [Context.AddTo]. The hook's tools call the Context's other methods.
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
	// Update commits writes that take effect at once, even if the hook fails later.
	Update state.Updater
	// Facts are the facts about the hook. Their Members replace the members that are in the store.
	Facts hookapi.Facts
	// RelationName is the name of the hook's relation in the local charm. It is used if the relation is gone
	// from the store.
	RelationName string
	// CharmURL is the charm whose options the hook sees. If CharmURL is empty, the hook sees the options of
	// the service's charm.
	CharmURL string
	// Log writes a line that the hook logs.
	Log func(level, message string)
	// Action is the running action. It is nil in hooks and commands.
	Action *hookapi.Action
	// Resources is the directory for downloaded resources. If it is empty, the hook cannot get resources.
	Resources string
	// SecretKeys opens and seals secrets.
	SecretKeys secret.Keeper
}

// Context is the context of one running hook. Several goroutines can use it at once.
type Context struct {
	opts Options

	mu        sync.Mutex
	ended     bool
	reads     int                      // how many times the store was read
	relations map[int]hookapi.Relation // the relations that the hook has read
	ids       map[string][]int         // the ids of the relations of a unit or service
	nodes     map[hookapi.Node]*settingsNode
	config    *serviceConfig
	ports     map[string]*unitPorts

	leads           *bool         // whether the unit leads its service; nil until it is read
	needsLeadership bool          // the hook has written something that only a leader can write
	leaderSettings  *settingsNode // nil until they are read
	unitState       *settingsNode // nil until it is read

	secrets *secretCache // nil until they are read
	storage *unitStorage // nil until it is read

	lastStatus    *state.WorkloadStatus // the last status that the hook has set for its unit, or nil
	actionResults map[string]any
	actionFailure *string // the message of action-fail, or nil

	fetchMu sync.Mutex // serializes downloads of resources; never held together with mu
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

// Close ends the hook. It waits until the calls in progress have returned. Later calls return
// [hookapi.ErrGone]. It is idempotent.
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

// answer calls f as [Context.do] does, and returns f's value.
func answer[T any](ctx context.Context, c *Context, f func() (T, error)) (value T, err error) {
	err = c.do(ctx, func() (err error) {
		value, err = f()
		return err
	})
	return value, err
}

// do calls f with c.mu held. It returns [hookapi.ErrGone] instead if the hook has ended, or ctx's error if ctx
// is done.
func (c *Context) do(ctx context.Context, f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkOpen(ctx); err != nil {
		return err
	}
	return f()
}

// checkOpen returns an error if the hook has ended or ctx is done. The caller holds c.mu.
func (c *Context) checkOpen(ctx context.Context) error {
	if c.ended {
		return hookapi.ErrGone
	}
	return ctx.Err()
}

// view calls read in one view of the store, counts the view in c.reads, and returns read's result. The caller
// holds c.mu.
func view[T any](ctx context.Context, c *Context, read func(v *state.View) (T, error)) (value T, err error) {
	c.reads++
	err = c.opts.State.View(ctx, func(v *state.View) (err error) {
		value, err = read(v)
		return err
	})
	return value, err
}

// loadOnce returns the cached value. At the first call it reads the value and caches it. The caller holds c.mu.
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

// localUnit returns the given unit, or the local unit if unit is empty. It returns [hookapi.ErrUnknownUnit]
// if unit is empty and the hook has no local unit. It does not check that the unit exists.
func (c *Context) localUnit(unit string) (string, error) {
	if unit == "" {
		unit = c.opts.Facts.Unit
	}
	if unit == "" {
		return "", fmt.Errorf("no local unit exists: %w", hookapi.ErrUnknownUnit)
	}

	return unit, nil
}

// Change is one key that a hook has changed in a settings node.
type Change struct {
	Node hookapi.Node
	state.Change
}

// AddTo adds the writes that the hook has buffered to the transaction, and returns the changed settings of
// relations. It skips writes to relations that are gone. It returns [state.ErrNotLeader] if the hook has written
// something that only a leader can write, and its unit no longer leads. It also ends the hook, as Close does. A
// transaction that runs again can call AddTo again.
func (c *Context) AddTo(ctx context.Context, tx *state.Tx) ([]Change, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true

	if err := c.addUnitAndLeaderState(tx); err != nil {
		return nil, err
	}
	if err := c.addSecrets(ctx, tx); err != nil {
		return nil, err
	}
	if err := c.addStorage(tx); err != nil {
		return nil, err
	}

	changes, err := c.addSettings(tx)
	if err != nil {
		return nil, err
	}

	for _, unit := range slices.Sorted(maps.Keys(c.ports)) {
		if err := c.ports[unit].commit(tx, unit); err != nil {
			return nil, err
		}
	}

	return changes, nil
}

// addSettings adds the hook's changes of settings in relations to the transaction, and returns these changes.
func (c *Context) addSettings(tx *state.Tx) ([]Change, error) {
	var changes []Change
	for _, at := range slices.SortedFunc(maps.Keys(c.nodes), compareNodes) {
		changed, err := mergeNode(tx, at, c.nodes[at].diff())
		if err != nil {
			return nil, err
		}
		for _, ch := range changed {
			changes = append(changes, Change{at, ch})
		}

		if at.Service != "" && len(changed) > 0 {
			if err := c.notifyMembers(tx, at); err != nil {
				return nil, err
			}
		}
	}

	return changes, nil
}

// notifyMembers makes the other members of the relation run their changed hooks after a change of a service's own
// settings. A charm of the classic dialect has no hook for these settings. It runs its changed hook only after a
// change of a unit's settings, so notifyMembers marks the settings of a unit as changed: those of the hook's unit
// or, if that unit does not belong to the service, those of the service's leader. It does nothing if the service
// has no leader, or if that unit is not a member of the relation.
func (c *Context) notifyMembers(tx *state.Tx, at hookapi.Node) (err error) {
	unit := c.opts.Facts.Unit
	if serviceOf(unit) != at.Service {
		unit, err = tx.Leader(at.Service)
		if err != nil {
			return err
		}
		if unit == "" {
			return nil
		}
	}

	return tx.TouchSettings(at.Relation, unit)
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

// compareNodes orders nodes by relation, then by unit, then by service.
func compareNodes(a, b hookapi.Node) int {
	return cmp.Or(
		cmp.Compare(a.Relation, b.Relation),
		cmp.Compare(a.Unit, b.Unit),
		cmp.Compare(a.Service, b.Service),
	)
}

// mergeNode merges changes into the settings of a unit or service in a relation, and returns what it has changed.
// It returns nil if the relation is gone, or if the unit or service was never in it.
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

// maxLoggedValue limits the part of a value that is logged, in bytes.
const maxLoggedValue = 200

// String returns the change as a log line. [text.HideSecrets] recognizes secrets in this form.
func (c Change) String() string {
	if c.New == nil {
		return fmt.Sprintf("setting removed: %q (was %s)", c.Key, formatValue(c.Old))
	}
	return fmt.Sprintf("setting changed: %q=%s (was %s)", c.Key, formatValue(c.New), formatValue(c.Old))
}

// formatValue returns a setting's value for the log, quoted. It hides secrets in a value of more than
// maxLoggedValue bytes, and shortens the value to that length. [text.HideSecrets] can recognize the secrets in
// shorter values later, in the log line. For nil it returns "unset".
func formatValue(value *string) string {
	if value == nil {
		return "unset"
	}
	if len(*value) <= maxLoggedValue {
		return fmt.Sprintf("%q", *value)
	}

	// Hide secrets before the value is cut, since a password in half a URL cannot be recognized.
	shown := text.HideSecrets(*value)
	if len(shown) <= maxLoggedValue {
		return fmt.Sprintf("%q", shown)
	}

	// The cut may split a character.
	beginning := strings.ToValidUTF8(shown[:maxLoggedValue], "")
	return fmt.Sprintf("%q... (%d bytes)", beginning, len(*value))
}
