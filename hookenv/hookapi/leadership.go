package hookapi

import "context"

// Leadership answers whether the local unit leads its service, and holds what
// the leader tells its peers. Of a service's units one leads at a time, as long
// as its agent lives.
//
// What only a leader may write is fixed with the hook's success, on condition
// that it leads still; the hook of a leader that was deposed meanwhile fails.
type Leadership interface {
	// IsLeader reports whether the local unit leads its service. It is read at the
	// first call and then fixed.
	IsLeader(ctx context.Context) (bool, error)
	// LeaderSettings returns a copy of the service's leader settings, own writes
	// applied. They are read whole at their first use and then fixed.
	LeaderSettings(ctx context.Context) (map[string]string, error)
	// SetLeaderSettings merges changes into them; a nil value deletes its key.
	// ErrNotLeader, also if there is no change.
	SetLeaderSettings(ctx context.Context, changes map[string]*string) error
}

// UnitState holds what a unit notes for itself: nobody else reads it, it outlives hooks
// and agents, and goes with the unit.
type UnitState interface {
	// State returns a copy of all of it, own writes applied.
	State(ctx context.Context) (map[string]string, error)
	// SetState merges changes into it, with the hook's success; a nil value
	// deletes its key.
	SetState(ctx context.Context, changes map[string]*string) error
}
