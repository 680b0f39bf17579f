// Package wake wakes a loop when records in the store change. It keeps the same watch as long as the loop
// watches the same records.
package wake

import (
	"context"
	"errors"
	"slices"
	"sync"

	"bijou/state"
)

// Watch wakes one loop. The zero Watch is ready for use. Only the loop's goroutine can call its methods.
type Watch struct {
	about   []string // the names of the watched records, as passed to Renew
	watcher *state.Watcher
	feed    *state.Feed
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// Renew starts to watch the scopes after the revision. about names the records in the scopes. If the current
// watch has the same names, Renew keeps it, since it has missed nothing. Otherwise Renew ends the current watch. If
// it then returns an error, there is no watch.
func (w *Watch) Renew(
	ctx context.Context,
	st *state.State,
	revision int64,
	about []string,
	scopes ...state.Scope,
) error {
	if w.isAbout(about) {
		return nil
	}

	w.Close()
	watcher, err := st.Watch(ctx, revision, scopes...)
	if err != nil {
		return err
	}

	w.watcher = watcher
	w.about = about

	// The watch outlives the caller's ctx: Close ends it.
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	feed := state.NewFeed()
	w.feed = feed
	// Collect blocks until the watch ends, and End passes the reason to Take.
	w.wg.Go(func() { feed.End(feed.Collect(ctx, watcher)) })
	return nil
}

// isAbout reports whether there is a watch of the named records.
func (w *Watch) isAbout(about []string) bool { return w.watcher != nil && slices.Equal(w.about, about) }

// Events returns a channel that receives a value when Take has something to return. Without a watch it returns
// nil, a channel that never receives.
func (w *Watch) Events() <-chan struct{} {
	if w.watcher == nil {
		return nil
	}
	return w.feed.Ready()
}

// Take returns the keys that have changed since the last call, sorted. lost is true if there is no watch, if the
// watch has ended, or if there were too many changes, in which case Take ends the watch. The caller must then read a
// fresh snapshot, and Renew the watch. err is the error that ended the watch. It is nil if the watch had only fallen
// behind.
func (w *Watch) Take() (keys []string, lost bool, err error) {
	if w.watcher == nil {
		return nil, true, nil
	}

	set := w.feed.Take()
	if set.All { // any key may have changed: the watch has ended, or the feed has dropped too many changes
		w.Close()
		if errors.Is(set.Err, state.ErrHistoryLost) {
			return nil, true, nil // the watch had fallen behind
		}
		return nil, true, set.Err
	}

	for _, change := range set.Changes {
		keys = append(keys, change.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys), false, nil
}

// Close ends the watch, if there is one, and waits for its goroutine.
func (w *Watch) Close() {
	if w.watcher == nil {
		return
	}

	w.cancel()
	w.watcher.Close()
	w.wg.Wait()
	w.watcher = nil
}
