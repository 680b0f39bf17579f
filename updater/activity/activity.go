// Package activity records what a process is doing right now, and for what it waits, so
// that somebody else can show it. Whatever begins is recorded in the Log in its context, if
// there is one. All of the updater may import it.
package activity

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bijou/updater/record"
)

// Log keeps what a process is doing, and within what. Its methods may be called from several
// goroutines.
type Log struct {
	mu    sync.Mutex
	items []*Item // the innermost is the last
}

// Item is one thing that is being done. A nil one does nothing.
type Item struct {
	log     *Log
	current record.Activity
}

type contextKey struct{}

// With returns a context under which [Begin] records activities in the log.
func With(ctx context.Context, l *Log) context.Context {
	return context.WithValue(ctx, contextKey{}, l)
}

// Begin records that something begins. It goes on until End.
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

// End records that it is over.
func (i *Item) End() {
	if i == nil {
		return
	}
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	i.log.items = slices.DeleteFunc(i.log.items, func(other *Item) bool { return other == i })
}

// Say changes the description, but not the beginning.
func (i *Item) Say(format string, args ...any) { i.Wait("", nil, fmt.Sprintf(format, args...)) }

// Wait records that it waits for others, and for whom. A wait of another kind begins now.
func (i *Item) Wait(kind string, servers []int, message string) {
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

// Current returns the innermost item that has been going on for so long, or else the
// outermost; ok is false if nothing is being done.
func (l *Log) Current(lasting time.Duration) (a record.Activity, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, i := range slices.Backward(l.items) {
		a = i.current
		if time.Since(a.Since) >= lasting {
			break
		}
	}

	return a, len(l.items) > 0
}
