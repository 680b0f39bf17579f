// Package activity is what a process is doing right now, and for what it waits, so that
// somebody else can show it. Who begins something says so to the Log in its context; where
// there is none, nobody hears of it.
//
// It decides nothing and imports nothing of bijou; all of the updater may import it.
package activity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Log is what is being done, and within what. Its methods may be called from several
// goroutines.
type Log struct {
	mu    sync.Mutex
	items []*Item // the innermost is the last
}

// Entry is one thing that is being done.
type Entry struct {
	Message string
	Kind    string // of a wait for others; "" is work
	Servers []int  // for whom it waits, as far as that is known
	Since   time.Time
}

// Item is an Entry that goes on. A nil one says nothing to nobody.
type Item struct {
	log   *Log
	entry Entry
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
	i := &Item{log: l, entry: Entry{Message: fmt.Sprintf(format, args...), Since: time.Now()}}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items = append(l.items, i)
	return i
}

// Run is Begin of a command.
func Run(ctx context.Context, words []string) *Item {
	return Begin(ctx, "runs %q", strings.Join(words, " "))
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
func (i *Item) Say(format string, args ...any) {
	if i != nil {
		i.change(Entry{Message: fmt.Sprintf(format, args...)})
	}
}

// Wait says that it waits for others, and for whom; a wait of another kind begins now.
func (i *Item) Wait(kind string, servers []int, message string) {
	if i != nil {
		i.change(Entry{Message: message, Kind: kind, Servers: servers})
	}
}

func (i *Item) change(e Entry) {
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	if e.Since = i.entry.Since; e.Kind != i.entry.Kind {
		e.Since = time.Now()
	}
	i.entry = e
}

// Current returns the innermost thing that has been going on for so long, or else the
// outermost; ok is false if nothing is being done.
func (l *Log) Current(lasting time.Duration) (e Entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range slices.Backward(l.items) {
		if time.Since(i.entry.Since) >= lasting {
			return i.entry, true
		}
	}
	if len(l.items) == 0 {
		return e, false
	}
	return l.items[0].entry, true
}
