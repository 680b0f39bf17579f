package state

import (
	"errors"
	"fmt"

	"bijou/state/store"
)

// The kinds of refusal that are of entities, beside those in kverrors.go.
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
	// ErrRunning: agents or provisioners are at work, and must not be.
	ErrRunning = errors.New("still runs")
	// ErrMoved: the environment has left this store for another.
	ErrMoved = fmt.Errorf("it has moved: %w", store.ErrStoreGone)
	// ErrFormat: the store holds no environment, or one of another format.
	ErrFormat = errors.New("unknown format")
)
