package state

import (
	"context"

	"bijou/state/store"
	"bijou/state/store/mem"
)

// CreateMemory makes an environment in memory and returns it opened, for tests: see
// statetest.
func CreateMemory(ctx context.Context, env Environment) (*State, error) {
	if err := env.validate(); err != nil {
		return nil, err
	}
	s := &State{store: mem.New()}
	return s, s.initialise(ctx, env)
}

// Share opens an environment in memory a second time, as another process would:
// sessions of each are its own. It panics on any other store.
func (s *State) Share() *State { return &State{store: mem.Share(s.store)} }

// Abandon ends the use of an environment in memory as kill -9 ends a process:
// its sessions are not closed, but expire when their TTL has passed. It panics
// on any other store.
func (s *State) Abandon() { mem.Abandon(s.store) }

// ShareWrapped opens an environment in memory a second time, as Share does, with wrap's
// result between it and its store: for tests of failing stores. It panics on any other
// store.
func (s *State) ShareWrapped(wrap func(store.Store) store.Store) *State {
	return &State{store: wrap(mem.Share(s.store))}
}
