// Package state is the in-process library for the entities of an environment: charms, services, units,
// machines, relations, settings, storage, and the progress of unit agents. It keeps them in one key-value
// store. Entities that do not need this package's private parts have their own packages, with functions over
// its View and Tx: state/actions, state/logs, state/resources and state/secret/record.
//
// All durable data goes through this package. A View reads at one revision. An Update commits only if nothing
// that it read has changed, and otherwise runs again. A Watcher delivers the keys that changed.
//
// The package does not decide when hooks run or where instances start: the roles (agent, provision,
// multicall) do. It is not the store itself (state/store), and does not read charms (state/charm).
package state

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/secret"
	"bijou/state/store"
	"bijou/state/storeurl"
	"bijou/state/text"
)

// State is an open environment. It gives access to the entities in views and updates, and to the keys, blobs and
// watches below the entities. Its methods are safe for concurrent use.
type State struct{ space *keyspace.Space }

// Open opens the environment at a store's URL, for example "sqlite:PATH". It never creates one. It returns
// ErrNoStore if there is no store, and the errors of [CheckFormat].
func Open(ctx context.Context, url string) (*State, error) {
	st, err := storeurl.Open(ctx, url)
	if err != nil {
		return nil, err
	}

	s := OpenIn(st)
	if err := s.View(ctx, CheckFormat); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open %q: %w", url, err), st.Close())
	}

	return s, nil
}

// Create creates an environment at the URL, with machine 0, and closes it. It uses an existing empty store,
// since an interrupted Create leaves one behind. It returns ErrStoreExists if the existing store is not
// empty.
func Create(ctx context.Context, url string, env Environment) error {
	if err := env.validate(); err != nil {
		return fmt.Errorf("cannot create model: %w", err)
	}
	st, err := storeurl.Create(ctx, url)
	if err != nil {
		return err
	}
	// The environment is valid, so CreateIn returns a state to close even if it fails.
	s, err := CreateIn(ctx, st, env)
	return errors.Join(err, s.Close())
}

// initialise writes the records of a new environment: its format, its own record, and machine 0. It returns
// ErrStoreExists if the store contains an environment, and ErrFormat if it contains an incomplete copy of one.
func (s *State) initialise(ctx context.Context, env Environment) error {
	return s.Update(ctx, func(tx *Tx) error {
		_, ok, err := tx.keys.Get(keys.Format)
		if err != nil {
			return err
		}
		if ok {
			return refuse(ErrStoreExists, "the store already contains a model")
		}
		if err := tx.checkNotPartial(); err != nil {
			return err
		}

		// Machine 0 is the host itself, which needs no provider to start it.
		machine := Machine{
			Series: env.DefaultSeries, Life: Alive, Jobs: []string{JobManage, JobUnits},
			InstanceID: "localhost", Status: MachinePending, Constraints: env.Constraints,
		}

		if err := tx.keys.Put(keys.Format, FormatRecord{FormatVersion}); err != nil {
			return err
		}
		if err := tx.keys.Put(keys.Environment, env); err != nil {
			return err
		}
		// Machine 0 exists, so 1 is the number of the next machine.
		if err := tx.keys.Put(keys.MachineCounter, 1); err != nil {
			return err
		}

		return tx.keys.Put(keys.Machine("0"), machine)
	})
}

// CreateIn creates an environment in an empty store and returns it open. It also returns the open state with an
// error of the store. It returns a nil state if env is not valid.
func CreateIn(ctx context.Context, st store.Store, env Environment) (*State, error) {
	if err := env.validate(); err != nil {
		return nil, err
	}
	s := OpenIn(st)
	return s, s.initialise(ctx, env)
}

// OpenIn returns the environment in the store, without checking its format.
func OpenIn(st store.Store) *State { return &State{keyspace.New(st, keys.IsOfAgent, guards()...)} }

// SecretKeeper returns the keeper of the keys that seal secrets, if the store is a gateway's. Otherwise it
// returns nil, and the process must have the keys itself.
func (s *State) SecretKeeper() secret.Keeper {
	if h, ok := s.Store().(store.SecretHolder); ok {
		return h.SecretKeeper()
	}
	return nil
}

// Keys returns the view of the keys below the entities, for the packages in directories of state.
func (v *View) Keys() *keyspace.View { return v.keys }

// Keys returns the transaction on the keys below the entities, for the packages in directories of state.
func (tx *Tx) Keys() *keyspace.Tx { return tx.keys }

// Life is the state of an entity between its creation and its removal. It never returns to an earlier value.
type Life string

// The values of Life.
const (
	Alive Life = "alive"
	Dying Life = "dying" // will be removed, once its agent has shut it down
	Dead  Life = "dead"  // shut down; its record can be removed
)

// UnlessAlive returns the life, or "" for Alive.
func UnlessAlive(l Life) Life {
	if l == Alive {
		return ""
	}
	return l
}

// The kinds of errors of this package.
var (
	// ErrExists is returned if an entity with that name, or a relation between those endpoints, already
	// exists.
	ErrExists = errors.New("exists already")
	// ErrRevisionTaken is returned if a different archive has the charm's URL.
	ErrRevisionTaken = errors.New("the charm's revision already exists with different content")
	// ErrDead is returned if the entity is dying or dead, so that nothing can be added to it.
	ErrDead = errors.New("is dying")
	// ErrNoStorage is returned if the charm does not declare the storage, or does not allow the unit any more
	// of it.
	ErrNoStorage = errors.New("no such storage")
	// ErrInUse is returned if other entities still need the entity.
	ErrInUse = errors.New("in use")
	// ErrNotInError is returned if there is no error to resolve. The command prints that and succeeds.
	ErrNotInError = errors.New("not in error")
	// ErrAlreadyResolved is returned if the error is already marked as resolved. The command prints that and
	// succeeds.
	ErrAlreadyResolved = errors.New("already marked as resolved")
	// ErrOtherProvider is returned if a placement is for a provider that is not the environment's.
	ErrOtherProvider = errors.New("another provider")
	// ErrNotLeader is returned if the unit does not lead its service, or no longer does.
	ErrNotLeader = errors.New("not the leader")
	// ErrMoved is returned if the environment has moved from this store to a different one.
	ErrMoved = fmt.Errorf("the model has moved: %w", store.ErrStoreGone)
	// ErrFormat is returned if the store does not hold an environment, or holds one of a different format.
	ErrFormat = errors.New("unknown format")
)

// The kinds of errors of the key-value layer and of the stores. Package keyspace documents them.
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
	ErrDenied      = keyspace.ErrDenied
	ErrClosed      = keyspace.ErrClosed
)

// Replaced is the error for a store that was replaced while it was open. It is an ErrStoreGone.
type Replaced = keyspace.Replaced

// refuse returns an error with the formatted message, for which errors.Is reports kind.
func refuse(kind error, format string, args ...any) error {
	return keyspace.Refuse(kind, format, args...)
}

// IgnoreNotFound returns err, or nil for ErrNotFound. Callers use it for records that may have been removed
// in the meantime.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}

	return err
}

// Truncate returns a text of at most maxBytes unchanged. In a longer text it hides secrets, since a password in half
// a URL cannot be recognized. If the text is still too long, Truncate cuts it between two characters, and appends a
// note with the number of bytes that it cut off. The result then has at most maxBytes with the note. maxBytes must
// leave space for the note, which has at most 50 bytes.
func Truncate(message string, maxBytes int) string {
	if len(message) <= maxBytes {
		return message
	}

	message = text.HideSecrets(message)
	if len(message) <= maxBytes {
		return message
	}

	// The note for the whole text is at least as long as the one that is appended.
	kept := max(0, maxBytes-len(cutMark(len(message))))
	for kept > 0 && !utf8.RuneStart(message[kept]) {
		kept--
	}
	return message[:kept] + cutMark(len(message)-kept)
}

// cutMark returns the note at the end of a truncated text.
func cutMark(bytes int) string { return fmt.Sprintf("... (%d bytes cut off)", bytes) }

// maxMessageBytes limits the recorded message of a provider, charm or agent, since many messages must fit in
// one transaction.
const maxMessageBytes = 4 << 10

// FormatVersion is the version of the format that this code reads and writes. There is no older version yet.
const FormatVersion = 1

// FormatRecord is the record of a store's format.
type FormatRecord struct {
	Format int `json:"format"`
}

// CheckFormat returns an error if this binary cannot read the environment. The error is ErrMoved if the environment
// has moved to a different store. It is ErrFormat if the store has no environment, only an incomplete copy of one, or
// one of a different format.
func CheckFormat(v *View) error {
	if err := v.checkNotMoved(); err != nil {
		return err
	}

	doc, ok, err := keyspace.Load[FormatRecord](v.keys, keys.Format)
	if err != nil {
		return err
	}
	if !ok {
		if err := v.checkNotPartial(); err != nil {
			return err
		}
		return refuse(ErrFormat, "the store does not contain a bijou model")
	}
	if doc.Format != FormatVersion {
		return refuse(
			ErrFormat,
			"the state has format %d, but this bijou supports only format %d: use the bijou that wrote it, or a newer one",
			doc.Format,
			FormatVersion,
		)
	}

	return nil
}

// checkNotMoved returns ErrMoved if the environment has moved to a different store.
func (v *View) checkNotMoved() error {
	kv, err := v.keys.GetKV(keys.Moved)
	if err != nil {
		return err
	}
	if kv.Revision == 0 {
		return nil
	}
	return explainMoved(kv)
}

// explainMoved returns the error for a store with the MovedRecord kv.
func explainMoved(kv keyspace.KeyValue) error {
	moved, err := keyspace.Decode[MovedRecord](kv)
	if err != nil {
		return err
	}
	return refuse(ErrMoved, "the model has moved to %q", moved.To)
}

// checkNotPartial returns ErrFormat if the store has a PartialCopy. Callers call it only for a store without
// a format record, since the copy is then incomplete.
func (v *View) checkNotPartial() error {
	partial, ok, err := keyspace.Load[PartialCopy](v.keys, keys.PartialCopy)
	if err != nil {
		return err
	}
	if !ok {
		return nil
	}
	return refuse(ErrFormat, "the store contains only an incomplete copy of %q", partial.From)
}

// PartialCopy marks a store to which an environment is being copied. It is written before the first copied
// key, and removed once the old store is no longer needed. Without a format record beside it, the copy is
// incomplete.
type PartialCopy struct {
	Environment string    `json:"environment"` // the environment's UUID
	From        string    `json:"from"`
	Keep        bool      `json:"keep,omitempty"`
	Since       time.Time `json:"since"`
}

// MovedRecord marks a store from which the environment has moved to a different store.
type MovedRecord struct {
	To    string    `json:"to"`
	Since time.Time `json:"since"`
}

// CopyLockRecord names the process that is copying the environment.
type CopyLockRecord struct {
	keyspace.Presence
	To string `json:"to"`
}

// guards returns two guards. One refuses all work on an environment that has moved to a different store. The
// other keeps agents and leaders from starting while the environment is copied.
func guards() []keyspace.Guard {
	return []keyspace.Guard{
		{Key: keys.Moved, Explain: explainMoved},
		{Key: keys.CopyLock, Leased: true, Explain: explainCopyLock},
	}
}

// explainCopyLock returns the error for an environment with the CopyLockRecord kv.
func explainCopyLock(kv keyspace.KeyValue) error {
	lock, err := keyspace.Decode[CopyLockRecord](kv)
	if err != nil {
		return err
	}
	return refuse(ErrRunning, "the model is being copied to %q, by process %d on host %q", lock.To,
		lock.PID, lock.Host)
}
