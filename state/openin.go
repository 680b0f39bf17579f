package state

import (
	"context"

	"bijou/state/store"
)

// CreateIn makes an environment in an empty store and returns it opened.
func CreateIn(ctx context.Context, st store.Store, env Environment) (*State, error) {
	if err := env.validate(); err != nil {
		return nil, err
	}
	s := newState(st)
	return s, s.initialise(ctx, env)
}

// OpenIn returns the environment that is in the store.
func OpenIn(st store.Store) *State { return newState(st) }

// Store returns what the environment lies in, for whoever copies it whole.
func (s *State) Store() store.Store { return s.space.Store() }
