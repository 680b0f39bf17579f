package store

import (
	"context"
	"errors"
)

// What a store answers beside what it was asked for. Ask with errors.Is: messages
// say more.
var (
	// ErrConflict: a condition of the transaction did not hold; nothing was written.
	ErrConflict = errors.New("conflict")
	// ErrTooLarge: the transaction is above one of the limits; nothing was written.
	ErrTooLarge = errors.New("transaction too large")
	// ErrCompacted: the revision asked for is older than the history that the
	// store keeps. The answer is a fresh snapshot.
	ErrCompacted = errors.New("revision compacted")
	// ErrAway: the store does not answer now: nobody can be reached, or another
	// process keeps it locked. It may come back, and the same call then succeeds.
	ErrAway = errors.New("store is away")
	// ErrStoreGone: the store was deleted or replaced under us. It does not come back.
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

// Away makes an error that is ErrAway and its cause, and says why.
func Away(why string, cause error) error { return &away{why, cause} }

// Overdue is the error of a call whose context has ended while it waited for the
// store: the context's own, which is ErrAway too if that was its deadline.
func Overdue(ctx context.Context, why string) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return Away(why, ctx.Err())
}

type away struct {
	why   string
	cause error
}

func (a *away) Error() string   { return a.why }
func (a *away) Unwrap() []error { return []error{ErrAway, a.cause} }
