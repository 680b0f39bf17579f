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

// Watch wakes one loop. The zero Watch is ready for use; its methods are called by the
// loop's goroutine only.
type Watch struct {
	about   []string // what is watched, by name
	watcher *state.Watcher
	pending *pendingKeys
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// pendingKeys are the changes that a watcher has delivered and the loop has not taken.
type pendingKeys struct {
	events chan struct{} // buffered: one wake is as good as many

	mu   sync.Mutex
	keys map[string]bool
	err  error // that has ended the watcher
}

// Renew watches the scopes from the revision on. It keeps a watch about the same things:
// that one has missed nothing. about names what the scopes are.
func (w *Watch) Renew(ctx context.Context, st *state.State, revision int64, about []string, scopes ...state.Scope) error {
	if w.isAbout(about) {
		return nil
	}
	w.Close()
	watcher, err := st.Watch(ctx, revision, scopes...)
	if err != nil {
		return err
	}
	w.watcher, w.about = watcher, about
	w.pending = &pendingKeys{events: make(chan struct{}, 1), keys: map[string]bool{}}
	ctx, w.cancel = context.WithCancel(context.WithoutCancel(ctx))
	w.wg.Go(func() { followWatcher(ctx, watcher, w.pending) })
	return nil
}

func (w *Watch) isAbout(about []string) bool { return w.watcher != nil && slices.Equal(w.about, about) }

// Events returns a channel that receives when there is something to Take; nil, which never
// does, without a watch.
func (w *Watch) Events() <-chan struct{} {
	if w.watcher == nil {
		return nil
	}
	return w.pending.events
}

// Take returns the keys that have changed since the last call. lost reports that these may
// not be all, so that a fresh snapshot is needed: there is no watch, or it has ended, and
// the next Renew makes another. err is why the watch has ended, unless it had only fallen
// behind.
func (w *Watch) Take() (keys []string, lost bool, err error) {
	if w.watcher == nil {
		return nil, true, nil
	}
	keys, err = w.pending.takeKeys()
	if err == nil {
		return keys, false, nil
	}
	w.Close()
	if errors.Is(err, state.ErrHistoryLost) {
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

func followWatcher(ctx context.Context, w *state.Watcher, p *pendingKeys) {
	for {
		keys, err := w.Next(ctx)
		p.addKeys(keys, err)
		if err != nil {
			return
		}
	}
}

func (p *pendingKeys) addKeys(keys []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range keys {
		p.keys[key] = true
	}
	p.err = err
	select {
	case p.events <- struct{}{}:
	default:
	}
}

func (p *pendingKeys) takeKeys() (keys []string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys = slices.Collect(maps.Keys(p.keys))
	clear(p.keys)
	return keys, p.err
}
