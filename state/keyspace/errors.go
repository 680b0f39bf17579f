package keyspace

import (
	"errors"
	"fmt"

	"bijou/state/store"
)

// The kinds of refusal. Their messages name the entity; test for them with errors.Is.
var (
	// ErrNotFound: there is no such entity (any more).
	ErrNotFound = errors.New("not found")
	// ErrSessionLost: the session's lease ended, or another process took over
	// what the update depended on (the leadership).
	// Nothing was written. The answer is a new session.
	ErrSessionLost = errors.New("session lost")
	// ErrClaimed: another place, or a process that lives, holds the claim.
	ErrClaimed = errors.New("claimed")
	// ErrClaimLost: another holder has taken the claim. Nothing was written, and
	// nothing will be: who held it ends.
	ErrClaimLost = errors.New("claim lost")
	// ErrRunning: somebody is at work, and must not be.
	ErrRunning = errors.New("still runs")
)

// The store's own errors that users of this package meet; see state/store.
var (
	ErrAway        = store.ErrAway
	ErrStoreGone   = store.ErrStoreGone
	ErrHistoryLost = store.ErrHistoryLost
	ErrNoStore     = store.ErrNoStore
	ErrStoreExists = store.ErrExists
	ErrTooLarge    = store.ErrTooLarge
	ErrClosed      = store.ErrClosed
	ErrConflict    = store.ErrConflict
)

type refusal struct {
	kind    error
	message string
}

func (r *refusal) Error() string { return r.message }
func (r *refusal) Unwrap() error { return r.kind }

// Refuse returns an error with its own message that errors.Is takes for kind.
func Refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}
