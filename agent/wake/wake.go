// Package wake turns a store's events into a channel on which a loop can wait
// beside other things. Only the packages of agent import it.
package wake

import (
	"context"
	"errors"
	"slices"
	"sync"

	"bijou/state"
)

// Watch wakes one loop. The zero Watch is ready for use; its methods are called
// by the loop's goroutine only.
type Watch struct {
	about   []string // what is watched, by name
	watcher *state.Watcher
	events  chan error // buffered: one wake is as good as many
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// Renew watches the scopes from the revision on, unless a watch about the same
// things is there: that one has missed nothing. About names what the scopes are.
func (w *Watch) Renew(ctx context.Context, st *state.State, revision int64, about []string, scopes ...state.Scope) error {
	if w.watcher != nil && slices.Equal(w.about, about) {
		return nil
	}
	w.Close()
	watcher, err := st.Watch(ctx, revision, scopes...)
	if err != nil {
		return err
	}
	w.watcher, w.about, w.events = watcher, about, make(chan error, 1)
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.wg.Go(func() { follow(ctx, watcher, w.events) })
	return nil
}

// Events delivers nil when something has changed, or the error that has ended the
// watch; then Ended says what that means.
func (w *Watch) Events() <-chan error { return w.events }

// Ended closes a watch that an error has ended, so that the next Renew makes
// another. It returns the error, or nil if it only means that a fresh snapshot
// is needed, or that nothing has ended.
func (w *Watch) Ended(err error) error {
	if err == nil {
		return nil
	}
	w.Close()
	if errors.Is(err, state.ErrCompacted) {
		return nil
	}
	return err
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

// follow passes events on until the watcher ends. An error takes the place of a
// wake that nobody has taken.
func follow(ctx context.Context, w *state.Watcher, events chan error) {
	for {
		_, err := w.Next(ctx)
		if err != nil {
			select {
			case <-events:
			default:
			}
			events <- err
			return
		}
		select {
		case events <- nil:
		default:
		}
	}
}
