package hookctx

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"bijou/hookenv/hookapi"
	"bijou/state"
)

// Action is the action that runs; no hook is one.
func (c *Context) Action(ctx context.Context) (hookapi.Action, error) {
	defer c.mu.Unlock()
	if err := c.inAction(ctx); err != nil {
		return hookapi.Action{}, err
	}
	a := *c.o.Action
	a.Parameters = maps.Clone(a.Parameters)
	return a, nil
}

// SetResults sets what the action returns.
func (c *Context) SetResults(ctx context.Context, results map[string]any) error {
	defer c.mu.Unlock()
	if err := c.inAction(ctx); err != nil {
		return err
	}
	all := mergeResults(c.results, results)
	data, err := json.Marshal(all)
	if err == nil && len(data) > state.MaxActionText {
		err = fmt.Errorf("they have %d bytes together, at most %d: write what is large into a file, and set its name", len(data), state.MaxActionText)
	}
	if err != nil {
		return fmt.Errorf("cannot set results: %w", err)
	}
	c.results = all
	return nil
}

// mergeResults merges dictionaries key by key, and replaces everything else.
func mergeResults(old, fresh map[string]any) map[string]any {
	all := make(map[string]any, len(old)+len(fresh))
	maps.Copy(all, old)
	for key, value := range fresh {
		before, isOld := all[key].(map[string]any)
		after, isNew := value.(map[string]any)
		if isOld && isNew {
			value = mergeResults(before, after)
		}
		all[key] = value
	}
	return all
}

// FailAction makes the action fail.
func (c *Context) FailAction(ctx context.Context, message string) error {
	defer c.mu.Unlock()
	if err := c.inAction(ctx); err != nil {
		return err
	}
	c.failure = &message
	return nil
}

// LogAction tells the operator how far the action is, and the unit's log, too.
func (c *Context) LogAction(ctx context.Context, message string) error {
	defer c.mu.Unlock()
	if err := c.inAction(ctx); err != nil {
		return err
	}
	id, err := strconv.Atoi(c.o.Action.ID)
	if err != nil {
		return fmt.Errorf("internal error: action id %q", c.o.Action.ID)
	}
	c.o.Log("INFO", message)
	line := state.ActionLine{Time: time.Now().UTC(), Message: message}
	return c.o.Update(ctx, func(tx *state.Tx) error { return tx.LogAction(id, line) })
}

// inAction is enter for a question that only an action may ask.
func (c *Context) inAction(ctx context.Context) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if c.o.Action == nil {
		return hookapi.ErrNoAction
	}
	return nil
}

// ActionEnd is what the action has set as its results, and why it says that it
// has failed; nil if it does not.
func (c *Context) ActionEnd() (results map[string]any, failure *string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.results, c.failure
}
