// Package activity records what a process is doing at the moment, and what it waits for, so that other
// programs can show it. [Begin] adds an activity to the Log in its context, if there is one.
package activity

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bijou/updater/record"
)

// Log keeps the nested activities of a process. Its methods are safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	items []*Item // the last is the innermost
}

// Item is one activity. The methods of a nil Item do nothing.
type Item struct {
	log     *Log
	current record.Activity
}

type contextKey struct{}

// With returns a context under which [Begin] records activities in the log.
func With(ctx context.Context, l *Log) context.Context {
	return context.WithValue(ctx, contextKey{}, l)
}

// Begin records the start of an activity in the context's log. The caller must call End when the activity is
// over. Begin returns nil if the context has no log.
func Begin(ctx context.Context, format string, args ...any) *Item {
	l, _ := ctx.Value(contextKey{}).(*Log)
	if l == nil {
		return nil
	}

	i := &Item{log: l, current: record.Activity{Message: fmt.Sprintf(format, args...), Since: time.Now()}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, i)
	return i
}

// End removes the activity from its log.
func (i *Item) End() {
	if i == nil {
		return
	}
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	i.log.items = slices.DeleteFunc(i.log.items, func(other *Item) bool { return other == i })
}

// Say changes the activity's description, and ends its wait, if there is one. The activity's time starts again
// only if a wait ends.
func (i *Item) Say(format string, args ...any) { i.Wait("", nil, fmt.Sprintf(format, args...)) }

// Wait records that the activity waits for the servers. kind is the reason for the wait, as in
// record.Activity, or "" if the activity does not wait. If kind has changed, the activity's time starts again.
func (i *Item) Wait(kind string, servers []int, message string) {
	// Begin returns nil if its context has no log.
	if i == nil {
		return
	}

	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	if kind != i.current.Kind {
		i.current.Since = time.Now()
	}
	i.current.Kind = kind
	i.current.Servers = servers
	i.current.Message = message
}

// Current returns the innermost activity that has lasted for at least the given duration. If there is none,
// it returns the outermost activity. ok is false if the log is empty.
func (l *Log) Current(lasting time.Duration) (a record.Activity, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	// If no activity has lasted long enough, the loop ends with the outermost one.
	for _, i := range slices.Backward(l.items) {
		a = i.current
		if time.Since(a.Since) >= lasting {
			break
		}
	}

	return a, len(l.items) > 0
}
