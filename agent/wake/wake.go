// Package wake turns a store's events into a channel on which a loop can wait
// beside other things. Only the packages of agent import it.
package wake

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"bijou/state"
)

// Watch wakes one loop. The zero Watch is ready for use; its methods are called
// by the loop's goroutine only.
type Watch struct {
	about   []string // what is watched, by name
	watcher *state.Watcher
	told    *told
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// told is what a watcher has told and the loop has not taken.
type told struct {
	events chan struct{} // buffered: one wake is as good as many

	mu   sync.Mutex
	keys map[string]bool
	err  error // that has ended the watcher
}

// Renew watches the scopes from the revision on, unless a watch about the same
// things is there: that one has missed nothing. About names what the scopes are.
func (w *Watch) Renew(ctx context.Context, st *state.State, revision int64, about []string, scopes ...state.Scope) error {
	if w.Is(about) {
		return nil
	}
	w.Close()
	watcher, err := st.Watch(ctx, revision, scopes...)
	if err != nil {
		return err
	}
	w.watcher, w.about = watcher, about
	w.told = &told{events: make(chan struct{}, 1), keys: map[string]bool{}}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.wg.Go(func() { follow(ctx, watcher, w.told) })
	return nil
}

// Is says if there is a watch about just these things.
func (w *Watch) Is(about []string) bool { return w.watcher != nil && slices.Equal(w.about, about) }

// Events delivers a word when there is something to Take; nil, which never does,
// without a watch.
func (w *Watch) Events() <-chan struct{} {
	if w.watcher == nil {
		return nil
	}
	return w.told.events
}

// Take answers which keys have changed since the last call. Lost says that this
// may not be all, so that a fresh snapshot is needed: there is no watch, or it has
// ended; then the next Renew makes another. An error says why it has ended,
// unless it only means that it is behind.
func (w *Watch) Take() (keys []string, lost bool, err error) {
	if w.watcher == nil {
		return nil, true, nil
	}
	keys, err = w.told.take()
	if err == nil {
		return keys, false, nil
	}
	w.Close()
	if errors.Is(err, state.ErrCompacted) {
		err = nil
	}
	return nil, true, err
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

// follow notes what the watcher tells until it ends.
func follow(ctx context.Context, w *state.Watcher, t *told) {
	for {
		keys, err := w.Next(ctx)
		t.note(keys, err)
		if err != nil {
			return
		}
	}
}

func (t *told) note(keys []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, key := range keys {
		t.keys[key] = true
	}
	t.err = err
	select {
	case t.events <- struct{}{}:
	default:
	}
}

func (t *told) take() (keys []string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys = slices.Collect(maps.Keys(t.keys))
	clear(t.keys)
	return keys, t.err
}
