package state

import (
	"context"

	"bijou/state/keyspace"
)

type (
	// Scope is a part of the environment that can be watched.
	Scope = keyspace.Scope
	// Watcher delivers which keys of its scopes changed.
	Watcher = keyspace.Watcher
	// KeyChange is the change of one key by a commit.
	KeyChange = keyspace.Change
)

// Watch delivers what changed after the revision (View.Revision), in order.
func (s *State) Watch(ctx context.Context, after int64, scopes ...Scope) (*Watcher, error) {
	return s.space.Watch(ctx, after, scopes...)
}
