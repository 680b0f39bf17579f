package state

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"bijou/state/keyspace"
	"bijou/state/store"
)

// The kinds of refusal, beside those of the key-value layer.
var (
	// ErrExists: there is one already, under that name or between those endpoints.
	ErrExists = errors.New("exists already")
	// ErrDead: the entity is dying or dead, so nothing can be added to it.
	ErrDead = errors.New("is dying")
	// ErrInUse: the entity still has what hangs on it.
	ErrInUse = errors.New("in use")
	// ErrNotInError: there is nothing to resolve. The command says so and succeeds.
	ErrNotInError = errors.New("not in error")
	// ErrAlreadyResolved: it is marked as resolved already. The command says so and succeeds.
	ErrAlreadyResolved = errors.New("already marked as resolved")
	// ErrOtherProvider: the placement is in the words of another provider than the
	// environment's.
	ErrOtherProvider = errors.New("another provider")
	// ErrNotLeader: the unit does not lead its service (any more).
	ErrNotLeader = errors.New("not the leader")
	// ErrMoved: the environment has left this store for another.
	ErrMoved = fmt.Errorf("it has moved: %w", store.ErrStoreGone)
	// ErrFormat: the store holds no environment, or one of another format.
	ErrFormat = errors.New("unknown format")
)

// Those of the key-value layer and of the stores that users of this package meet; see
// keyspace.
var (
	ErrNotFound    = keyspace.ErrNotFound
	ErrSessionLost = keyspace.ErrSessionLost
	ErrClaimed     = keyspace.ErrClaimed
	ErrClaimLost   = keyspace.ErrClaimLost
	ErrRunning     = keyspace.ErrRunning
	ErrAway        = keyspace.ErrAway
	ErrStoreGone   = keyspace.ErrStoreGone
	ErrHistoryLost = keyspace.ErrHistoryLost
	ErrNoStore     = keyspace.ErrNoStore
	ErrStoreExists = keyspace.ErrStoreExists
	ErrTooLarge    = keyspace.ErrTooLarge
	ErrClosed      = keyspace.ErrClosed
)

// refuse returns an error with its own message that errors.Is takes for kind.
func refuse(kind error, format string, args ...any) error {
	return keyspace.Refuse(kind, format, args...)
}

// wrapError puts what could not be done in front of an error, if there is one.
func wrapError(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf(format+": %w", append(args, *err)...)
	}
}

// IgnoreNotFound returns err, but no ErrNotFound: it is for what may have gone by itself meanwhile.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// truncate cuts a text to at most n bytes, between two characters.
func truncate(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// maxMessageBytes bounds what is kept of a provider's, charm's or agent's message: many
// of them have to fit in one transaction.
const maxMessageBytes = 4 << 10
