// Package activity is what a process is doing right now, and for what it waits, so that
// somebody else can show it. Who begins something says so to the Log in its context; where
// there is none, nobody hears of it. All of the updater may import it.
package activity

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bijou/updater/record"
)

// Log is what is being done, and within what. Its methods may be called from several
// goroutines.
type Log struct {
	mu    sync.Mutex
	items []*Item // the innermost is the last
}

// Item is one thing that is being done. A nil one says nothing to nobody.
type Item struct {
	log *Log
	is  record.Activity
}

type contextKey struct{}

// With returns a context in which whatever is begun is said to the log.
func With(ctx context.Context, l *Log) context.Context {
	return context.WithValue(ctx, contextKey{}, l)
}

// Begin says that something begins. It goes on until End.
func Begin(ctx context.Context, format string, args ...any) *Item {
	l, _ := ctx.Value(contextKey{}).(*Log)
	if l == nil {
		return nil
	}
	i := &Item{log: l, is: record.Activity{Message: fmt.Sprintf(format, args...), Since: time.Now()}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, i)
	return i
}

// End says that it is over.
func (i *Item) End() {
	if i == nil {
		return
	}
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	i.log.items = slices.DeleteFunc(i.log.items, func(other *Item) bool { return other == i })
}

// Say changes what it is, but for its beginning.
func (i *Item) Say(format string, args ...any) { i.Wait("", nil, fmt.Sprintf(format, args...)) }

// Wait says that it waits for others, and for whom. A wait of another kind begins now.
func (i *Item) Wait(kind string, servers []int, message string) {
	if i == nil {
		return
	}
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	if kind != i.is.Kind {
		i.is.Since = time.Now()
	}
	i.is.Kind, i.is.Servers, i.is.Message = kind, servers, message
}

// Current returns the innermost thing that has been going on for so long, or else the
// outermost; ok is false if nothing is being done.
func (l *Log) Current(lasting time.Duration) (a record.Activity, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range slices.Backward(l.items) {
		if a = i.is; time.Since(a.Since) >= lasting {
			break
		}
	}
	return a, len(l.items) > 0
}
