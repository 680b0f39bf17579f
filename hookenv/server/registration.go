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

// beginCall begins a call, which must end with calls.Done. It returns false if the hook has ended.
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
