package server

import (
	"context"
	"errors"
	"sync"

	"bijou/hookenv/hookapi"
)

// registration is one hook under its client id.
type registration struct {
	hook   hookapi.Hook
	ctx    context.Context // ends with the registration
	cancel context.CancelFunc

	mu    sync.Mutex
	ended bool
	calls sync.WaitGroup
}

// beginCall reports false if the hook has ended. Every call that it has let begin is followed by
// calls.Done.
func (r *registration) beginCall() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return false
	}

	r.calls.Add(1)
	return true
}

func (r *registration) end() {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.cancel()
	r.calls.Wait()
}

func (r *registration) isGone(err error) bool {
	return errors.Is(err, hookapi.ErrGone) || err != nil && r.ctx.Err() != nil
}
