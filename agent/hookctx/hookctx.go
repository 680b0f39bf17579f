// Package hookctx keeps what one running hook has read (a cache) and written
// (a buffer). It implements hookapi.Hook over state.
//
// It neither runs hooks nor talks to them: agent/uniter makes one for each hook
// and commits it, hook tools ask it. Only agent/uniter and agent/do import it.
package hookctx

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/secretkeys"
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
	SecretKeys secretkeys.File
}

// Context is one running hook. Its methods may be called from several goroutines.
type Context struct {
	opts Options

	mu        sync.Mutex
	ended     bool
	reads     int
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

// Facts never changes and never fails.
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

// Reads returns how many times the hook has read from the store.
func (c *Context) Reads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reads
}

// Log passes a line on at once, unless the hook has ended.
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

// do does one thing, by f, under the lock and unless the hook has ended.
func (c *Context) do(ctx context.Context, f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.checkOpen(ctx); err != nil {
		return err
	}
	return f()
}

// checkOpen returns why a question gets no answer any more; c.mu is held.
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

// localUnit returns the local unit where a caller gave no name.
func (c *Context) localUnit(unit string) (string, error) {
	if unit == "" {
		unit = c.opts.Facts.Unit
	}
	if unit == "" {
		return "", fmt.Errorf("there is no local unit: %w", hookapi.ErrUnknownUnit)
	}
	return unit, nil
}
