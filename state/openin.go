package state

import (
	"context"

	"bijou/state/keyspace"
	"bijou/state/store"
)

// CreateIn makes an environment in an empty store and returns it opened.
func CreateIn(ctx context.Context, st store.Store, env Environment) (*State, error) {
	if err := env.validate(); err != nil {
		return nil, err
	}
	s := OpenIn(st)
	return s, s.initialise(ctx, env)
}

// OpenIn returns the environment that is in the store, unchecked.
func OpenIn(st store.Store) *State { return &State{keyspace.New(st, guards()...)} }

// Store returns what the environment lies in, for whoever copies it whole.
func (s *State) Store() store.Store { return s.space.Store() }

// Space returns the keys of the environment, for the packages below state.
func (s *State) Space() *keyspace.Space { return s.space }

// Keys returns the keys themselves, for the packages below state.
func (v *View) Keys() *keyspace.View { return v.keys }

// Keys returns the keys themselves, for the packages below state.
func (tx *Tx) Keys() *keyspace.Tx { return tx.keys }
