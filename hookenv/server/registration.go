package server

import (
	"context"
	"errors"
	"sync"

	"bijou/hookenv/hookapi"
)

// registration is a hook that is registered under a client id.
type registration struct {
	hook   hookapi.Hook
	ctx    context.Context // done once the registration ends
	cancel context.CancelFunc

	mu    sync.Mutex
	ended bool
	calls sync.WaitGroup
}

// beginCall begins a call, which the caller must end with calls.Done. It returns false if the registration has ended.
func (r *registration) beginCall() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}

	r.calls.Add(1)
	return true
}

// end lets no new calls of the hook begin, cancels the running calls, and waits until they have ended.
func (r *registration) end() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.cancel()
	r.calls.Wait()
}

// isGone reports whether a call has failed with err because the hook has ended. Any error after the end of the hook
// counts, since the end cancels the context of the call.
func (r *registration) isGone(err error) bool {
	hasEnded := r.ctx.Err() != nil
	return errors.Is(err, hookapi.ErrGone) || err != nil && hasEnded
}
