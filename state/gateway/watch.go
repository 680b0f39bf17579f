package gateway

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bijou/state/store"
	"bijou/state/store/remote/protocol"
)

// Watch delivers what the identity may see of each commit.
func (s *session) Watch(request *protocol.WatchRequest, stream protocol.Store_WatchServer) error {
	return protocol.ToStatus(s.watch(stream.Context(), request, stream.Send))
}

func (s *session) watch(
	ctx context.Context,
	request *protocol.WatchRequest,
	send func(*protocol.WatchResponse) error,
) error {
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

// checkWatch refuses a watch at its beginning, and returns the newest revision. Later on what the
// identity has lost the right to is left out.
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

// filter leaves the events that the identity has a right to now, whatever it had when they happened.
func (s *session) filter(ctx context.Context, b store.Batch, scope store.Scope) (store.Batch, error) {
	v, closeView, err := s.openView(ctx)
	if err != nil {
		return store.Batch{}, err
	}
	defer closeView()

	visible := store.Batch{Revision: b.Revision}
	for _, e := range b.Events {
		e, err := v.show(ctx, e, b.Revision, scope)
		if errors.Is(err, store.ErrDenied) {
			continue
		}
		if err != nil {
			return store.Batch{}, err
		}
		visible.Events = append(visible.Events, e)
	}

	return visible, nil
}

// show returns the event as the identity may see it. What is asked for is what is there now: a value
// that has gone since is not told.
func (v *view) show(ctx context.Context, e store.Event, revision int64, scope store.Scope) (store.Event, error) {
	if isOwnKey(e.Key) {
		return e, store.ErrDenied
	}
	if v.rights == (allRights{}) {
		return e, nil
	}

	if err := v.mayHear(ctx, e.Key, scope); err != nil || e.Deleted {
		return e, err
	}
	kv, _, err := v.get(ctx, e.Key)
	if kv.Revision != revision {
		e.Value = nil
	}
	return e, err
}

// mayHear asks for what has brought the event: the key, or a prefix.
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
