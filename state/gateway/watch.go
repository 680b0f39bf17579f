package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// Watch delivers the part of each commit that the identity can read.
func (s *session) Watch(request *protocol.WatchRequest, stream protocol.Store_WatchServer) error {
	return protocol.ToStatus(s.watch(stream.Context(), request, stream.Send))
}

// watch sends the newest revision once the identity may watch the request's scope. Then it sends the events
// that the identity can see. It returns [store.ErrAway] if the identity already has maxWatches watches.
func (s *session) watch(
	ctx context.Context,
	request *protocol.WatchRequest,
	send func(*protocol.WatchResponse) error,
) error {
	// The number of watches is limited, since each watch reads the store for each commit in its scope. After
	// ErrAway, the client tries again.
	select {
	case s.watches <- struct{}{}:
	default:
		return fmt.Errorf("%w: %s already has %d watches", store.ErrAway, s.who, maxWatches)
	}
	defer func() { <-s.watches }()

	// No event is sent before checkWatch has allowed the watch.
	scope := request.Scope()
	w, err := s.g.store.Watch(ctx, request.GetAfter(), scope)
	if err != nil {
		return err
	}
	defer w.Close()

	revision, err := s.checkWatch(ctx, scope)
	if err != nil {
		return err
	}
	if err := send(&protocol.WatchResponse{Revision: revision}); err != nil {
		return err
	}

	for {
		b, err := w.Next(ctx)
		if err != nil {
			return err
		}
		visible, err := s.filter(ctx, b, scope)
		if err != nil {
			return err
		}
		if len(visible.Events) == 0 {
			continue
		}
		if err := send(protocol.FromBatch(visible)); err != nil {
			return err
		}
	}
}

// checkWatch returns the newest revision, or an error if the identity has no right to watch the scope. If the
// identity loses a right later, filter leaves out the events.
func (s *session) checkWatch(ctx context.Context, scope store.Scope) (revision int64, err error) {
	v, closeView, err := s.openView(ctx)
	if err != nil {
		return 0, err
	}
	defer closeView()

	for _, key := range scope.Keys {
		if err := v.rights.MayWatch(ctx, key); err != nil {
			return 0, err
		}
	}
	for _, prefix := range scope.Prefixes {
		if err := v.rights.MayWatchPrefix(ctx, prefix); err != nil {
			return 0, err
		}
	}
	return v.snap.Revision(ctx)
}

// filter returns the events that the identity currently has the right to see, even if it did not have the
// right when they happened.
func (s *session) filter(ctx context.Context, b store.Batch, scope store.Scope) (store.Batch, error) {
	v, closeView, err := s.openView(ctx)
	if err != nil {
		return store.Batch{}, err
	}
	defer closeView()

	visible := store.Batch{Revision: b.Revision}
	for _, e := range b.Events {
		shown, err := v.show(ctx, e, b.Revision, scope)
		if errors.Is(err, store.ErrDenied) {
			continue
		}
		if err != nil {
			return store.Batch{}, err
		}
		visible.Events = append(visible.Events, shown)
	}

	return visible, nil
}

// show returns the part of the event that the identity has the right to see. It returns store.ErrDenied if
// there is none. Unless the identity has all rights, show checks the right to watch the key. If the event is not
// a deletion, show then also checks the right to read the key's current value, and removes the event's value if
// the key has changed since the event.
func (v *view) show(ctx context.Context, e store.Event, revision int64, scope store.Scope) (store.Event, error) {
	if isOwnKey(e.Key) {
		return e, store.ErrDenied
	}
	if v.rights == (allRights{}) {
		return e, nil
	}

	if err := v.mayHear(ctx, e.Key, scope); err != nil {
		return e, err
	}
	if e.Deleted {
		return e, nil // without a value, so there is nothing to hide
	}

	// After an error of get, the caller does not use the event.
	kv, _, err := v.get(ctx, e.Key)
	if kv.Revision != revision {
		e.Value = nil
	}
	e.Value = v.rights.Show(e.Key, e.Value)
	return e, err
}

// mayHear returns an error unless the identity can watch the part of the scope that includes the key: the key
// itself if the scope names it, otherwise one of the prefixes.
func (v *view) mayHear(ctx context.Context, key string, scope store.Scope) error {
	if slices.Contains(scope.Keys, key) {
		return v.rights.MayWatch(ctx, key)
	}

	err := store.ErrDenied
	for _, prefix := range scope.Prefixes {
		if !strings.HasPrefix(key, prefix) {
			continue
		}
		err = v.rights.MayWatchPrefix(ctx, prefix)
		if !errors.Is(err, store.ErrDenied) {
			break
		}
	}

	return err
}
