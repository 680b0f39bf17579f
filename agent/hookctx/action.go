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
	"bijou/state/actions"
)

// Action returns the running action. It returns [hookapi.ErrNoAction] in a hook or a command.
func (c *Context) Action(ctx context.Context) (hookapi.Action, error) {
	return answer(ctx, c, func() (hookapi.Action, error) {
		if c.opts.Action == nil {
			return hookapi.Action{}, hookapi.ErrNoAction
		}
		a := *c.opts.Action
		a.Parameters = maps.Clone(a.Parameters)
		return a, nil
	})
}

// doInAction calls f, as [Context.do] does, if an action is running. In a hook or a command it returns
// [hookapi.ErrNoAction].
func (c *Context) doInAction(ctx context.Context, f func() error) error {
	return c.do(ctx, func() error {
		if c.opts.Action == nil {
			return hookapi.ErrNoAction
		}
		return f()
	})
}

// SetResults merges results into the results that the action returns at its end. It returns an error if the
// merged results exceed actions.MaxText bytes as JSON.
func (c *Context) SetResults(ctx context.Context, results map[string]any) error {
	return c.doInAction(ctx, func() error {
		merged := mergeResults(c.actionResults, results)
		data, err := json.Marshal(merged)
		if err != nil {
			return fmt.Errorf("cannot set results: %w", err)
		}
		if len(data) > actions.MaxText {
			return fmt.Errorf(
				"cannot set results: their total size is %d bytes, and the limit is %d: write large results to a file and set the file's name",
				len(data), actions.MaxText,
			)
		}

		c.actionResults = merged
		return nil
	})
}

// mergeResults returns a copy of the old results with the fresh results merged in. It merges dictionaries key
// by key, and replaces all other values.
func mergeResults(old, fresh map[string]any) map[string]any {
	merged := make(map[string]any, len(old)+len(fresh))
	maps.Copy(merged, old)

	for key, value := range fresh {
		oldDict, oldIsDict := merged[key].(map[string]any)
		freshDict, freshIsDict := value.(map[string]any)
		if oldIsDict && freshIsDict {
			value = mergeResults(oldDict, freshDict)
		}
		merged[key] = value
	}

	return merged
}

// FailAction marks the action as failed with this message.
func (c *Context) FailAction(ctx context.Context, message string) error {
	return c.doInAction(ctx, func() error {
		c.actionFailure = &message
		return nil
	})
}

// LogAction reports the action's progress to the operator at once, and adds it to the unit's log.
func (c *Context) LogAction(ctx context.Context, message string) error {
	return c.doInAction(ctx, func() error {
		id, err := strconv.Atoi(c.opts.Action.ID)
		if err != nil {
			return fmt.Errorf("internal error: action id %q", c.opts.Action.ID)
		}

		c.opts.Log("INFO", message)
		line := actions.Line{Time: time.Now().UTC(), Message: message}
		return c.opts.Update(ctx, func(tx *state.Tx) error { return actions.Log(tx, id, line) })
	})
}

// ActionEnd returns the results that the action has set, and the message of its last FailAction. failure is
// nil if the action has not called FailAction.
func (c *Context) ActionEnd() (results map[string]any, failure *string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.actionResults, c.actionFailure
}
