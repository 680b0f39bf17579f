// Package wake keeps a loop's watch of the store for as long as it is about the same
// things. Only the packages of agent import it.
package wake

import (
	"context"
	"errors"
	"slices"
	"sync"

	"bijou/state"
)

// Watch wakes one loop. The zero Watch is ready for use; its methods are called by the
// loop's goroutine only.
type Watch struct {
	about   []string // what is watched, by name
	watcher *state.Watcher
	feed    *state.Feed
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// Renew watches the scopes from the revision on. It keeps a watch about the same things, since that has
// missed nothing. about names the things that the scopes are about.
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
	w.feed = state.NewFeed()
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	feed := w.feed
	w.wg.Go(func() { feed.End(feed.Collect(ctx, watcher)) })
	return nil
}

func (w *Watch) isAbout(about []string) bool { return w.watcher != nil && slices.Equal(w.about, about) }

// Events returns a channel that receives when there is something to Take; nil, which never
// does, without a watch.
func (w *Watch) Events() <-chan struct{} {
	if w.watcher == nil {
		return nil
	}
	return w.feed.Ready()
}

// Take returns the keys that have changed since the last call. lost reports that these may not be
// all, so that a fresh snapshot is needed: there is no watch, or it has ended, and the next Renew
// makes another. err is why the watch has ended, unless it had only fallen behind.
func (w *Watch) Take() (keys []string, lost bool, err error) {
	if w.watcher == nil {
		return nil, true, nil
	}

	set := w.feed.Take()
	if set.All {
		w.Close()
		if errors.Is(set.Err, state.ErrHistoryLost) {
			set.Err = nil
		}
		return nil, true, set.Err
	}

	for _, c := range set.Changes {
		keys = append(keys, c.Key)
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
