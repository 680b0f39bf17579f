package store

import (
	"context"
	"errors"
)

// The errors that all stores have in common. Test with errors.Is: messages say more.
var (
	// ErrConflict: a condition of the transaction did not hold; nothing was written.
	ErrConflict = errors.New("conflict")
	// ErrTooLarge: the transaction is above one of the limits; nothing was written.
	ErrTooLarge = errors.New("transaction too large")
	// ErrHistoryLost: the revision is older than the history that the store keeps.
	// Take a fresh snapshot.
	ErrHistoryLost = errors.New("revision compacted")
	// ErrAway: the store does not answer now: nobody can be reached, or another
	// process keeps it locked. It may come back, and the same call then succeeds.
	ErrAway = errors.New("store is away")
	// ErrStoreGone: the store was deleted or replaced while it was open. It does not come back.
	ErrStoreGone = errors.New("store is gone")
	// ErrNoStore: there is no store at that place; Open never creates one.
	ErrNoStore = errors.New("no store")
	// ErrExists: Create found a store already there.
	ErrExists = errors.New("store exists already")
	// ErrLeaseLost: the lease named by an operation does not live any more; nothing was written.
	ErrLeaseLost = errors.New("lease lost")
	// ErrClosed: the store, snapshot or watcher was closed on this side.
	ErrClosed = errors.New("closed")
)

// AwayError returns an error that is ErrAway and its cause, with why as its text.
func AwayError(why string, cause error) error { return &away{why, cause} }

// OverdueError returns the error of a call whose context has ended while it waited for the
// store: the context's own, which is ErrAway too if its deadline has passed.
func OverdueError(ctx context.Context, why string) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return AwayError(why, ctx.Err())
}

type away struct {
	why   string
	cause error
}

func (a *away) Error() string   { return a.why }
func (a *away) Unwrap() []error { return []error{ErrAway, a.cause} }
