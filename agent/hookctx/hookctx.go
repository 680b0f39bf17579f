// Package hookctx is what one running hook knows: a cache of what it has read,
// and a buffer of what it has written. It implements hookapi.Hook over state.
//
// It neither runs hooks nor talks to them: agent/uniter makes one for each hook
// and commits it, hookenv asks it. Only agent/uniter and agent/do import it.
package hookctx

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// Options say what a hook is made of.
type Options struct {
	State *state.State
	// Update commits what takes effect at once, whatever becomes of the hook.
	Update state.Updater
	// Facts are complete: Members are those the hook is to see.
	Facts hookapi.Facts
	// RelationName is the implied relation's in the local charm; it describes a
	// relation that is gone from the store.
	RelationName string
	// CharmURL is the charm whose options the hook sees; empty: the service's.
	CharmURL string
	// Log gets what the hook logs.
	Log func(level, message string)
	// Action is what runs, if it is an action; nil in hooks.
	Action *hookapi.Action
	// Resources is the folder that resources are fetched into; empty: none are.
	Resources string
}

// Context is one running hook. Its methods may be called from several
// goroutines.
type Context struct {
	o Options

	mu        sync.Mutex
	ended     bool
	reads     int
	relations map[int]hookapi.Relation
	ids       map[string][]int
	nodes     map[hookapi.Node]*node
	config    *config
	ports     map[string]*ports

	leader         *bool // nil: nobody has asked yet
	asLeader       bool  // it has written what only a leader may
	leaderSettings *node // nil: not read, as are the unit's notes
	notes          *node

	results map[string]any // of an action
	failure *string        // why it says that it has failed

	fetching sync.Mutex // of resources; never held together with mu
}

var _ hookapi.Hook = (*Context)(nil)

// New makes the context of a hook that is about to start.
func New(o Options) *Context {
	o.Facts.Members = slices.Clone(o.Facts.Members)
	return &Context{
		o:         o,
		relations: map[int]hookapi.Relation{},
		ids:       map[string][]int{},
		nodes:     map[hookapi.Node]*node{},
		ports:     map[string]*ports{},
	}
}

// Facts never changes and never fails.
func (c *Context) Facts() hookapi.Facts {
	f := c.o.Facts
	f.Members = slices.Clone(f.Members)
	return f
}

// Close ends the hook: every question is answered with hookapi.ErrGone from now
// on. It is idempotent, and waits for questions that are being answered.
func (c *Context) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// Reads is how many times the hook has read from the store.
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
		c.o.Log(level, message)
	}
}

// enter locks the context for one question; the caller unlocks it, also after an error.
func (c *Context) enter(ctx context.Context) error {
	c.mu.Lock()
	if c.ended {
		return hookapi.ErrGone
	}
	return ctx.Err()
}

// view reads once from the store.
func (c *Context) view(ctx context.Context, f func(v *state.View) error) error {
	c.reads++
	return c.o.State.View(ctx, f)
}

// local names the local unit where a caller gave no name.
func (c *Context) local(unit string) (string, error) {
	if unit == "" {
		unit = c.o.Facts.Unit
	}
	if unit == "" {
		return "", fmt.Errorf("there is no local unit: %w", hookapi.ErrUnknownUnit)
	}
	return unit, nil
}
