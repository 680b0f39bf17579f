// Package state is the shared in-process state library: the entities of an
// environment (charms, services, units, machines, relations, settings, storage, what unit
// agents are in the middle of) over one key-value store. Entities that need nothing private of
// these are packages below it, of functions over its View and Tx: state/actions, state/logs,
// state/resources, state/secret/record.
//
// Everything durable goes through it. A View reads at one revision; an Update commits only if
// nothing that it read has changed, and is rerun otherwise; a Watcher says which keys changed. It
// decides nothing about when hooks run or where instances start: the roles (agent, provision,
// multicall) do, and meet here. It is not the store itself (state/store), does not read charms
// (state/charm), and imports no role. Every role may import it.
package state

import (
	"cmp"
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

// State is one opened environment: its keys, blobs and watches, and over them views and
// updates of its entities. Its methods may be called from several goroutines.
type State struct{ space *keyspace.Space }

// Open opens the environment at a store's URL, for example "sqlite:PATH". It never creates one. It returns
// ErrNoStore if there is no store, and ErrFormat if the store holds no environment, or one of a different
// format.
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

// Create makes an environment at the URL, with machine 0, and closes it. A store
// that is there already is refused with ErrStoreExists; one that was left empty
// by a Create that died half-way is taken.
func Create(ctx context.Context, url string, env Environment) error {
	if err := env.validate(); err != nil {
		return fmt.Errorf("cannot create model: %w", err)
	}
	st, err := storeurl.Create(ctx, url)
	if err != nil {
		return err
	}
	s, err := CreateIn(ctx, st, env)
	return errors.Join(err, s.Close())
}

// initialise writes the records that every environment begins with.
func (s *State) initialise(ctx context.Context, env Environment) error {
	return s.Update(ctx, func(tx *Tx) error {
		if _, ok, err := tx.keys.Get(keys.Format); err != nil || ok {
			return cmp.Or(err, refuse(ErrStoreExists, "there is a model already"))
		}
		if err := tx.checkNotPartial(); err != nil {
			return err
		}

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
		if err := tx.keys.Put(keys.MachineCounter, 1); err != nil {
			return err
		}

		return tx.keys.Put(keys.Machine("0"), machine)
	})
}

// CreateIn makes an environment in an empty store and returns it opened.
func CreateIn(ctx context.Context, st store.Store, env Environment) (*State, error) {
	if err := env.validate(); err != nil {
		return nil, err
	}
	s := OpenIn(st)
	return s, s.initialise(ctx, env)
}

// OpenIn returns the environment that is in the store, unchecked.
func OpenIn(st store.Store) *State { return &State{keyspace.New(st, keys.IsOfAgent, guards()...)} }

// SecretKeeper returns the keeper of the keys that seal secrets, if the store is a gateway's; nil if the process has
// to have them itself.
func (s *State) SecretKeeper() secret.Keeper {
	if h, ok := s.Store().(store.SecretHolder); ok {
		return h.SecretKeeper()
	}
	return nil
}

// Keys returns the keys themselves, for the packages below state.
func (v *View) Keys() *keyspace.View { return v.keys }

// Keys returns the keys themselves, for the packages below state.
func (tx *Tx) Keys() *keyspace.Tx { return tx.keys }

// Life is the state of an entity between its making and its removal. It never goes back.
type Life string

// The lives. Dying: to be removed, and its agent takes it down. Dead: taken down, its
// remover may remove it.
const (
	Alive Life = "alive"
	Dying Life = "dying"
	Dead  Life = "dead"
)

// UnlessAlive returns the life, or an empty one instead of Alive.
func UnlessAlive(l Life) Life {
	if l == Alive {
		return ""
	}
	return l
}

// The kinds of refusal, beside those of the key-value layer.
var (
	// ErrExists: there is one already, under that name or between those endpoints.
	ErrExists = errors.New("exists already")
	// ErrRevisionTaken: another archive has the charm's URL.
	ErrRevisionTaken = errors.New("the charm's revision is taken by other content")
	// ErrDead: the entity is dying or dead, so nothing can be added to it.
	ErrDead = errors.New("is dying")
	// ErrNoStorage: the charm has no such storage, or allows the unit no more of it.
	ErrNoStorage = errors.New("no such storage")
	// ErrInUse: the entity still has what hangs on it.
	ErrInUse = errors.New("in use")
	// ErrNotInError: there is nothing to resolve. The command says so and succeeds.
	ErrNotInError = errors.New("not in error")
	// ErrAlreadyResolved: it is marked as resolved already. The command says so and succeeds.
	ErrAlreadyResolved = errors.New("already marked as resolved")
	// ErrOtherProvider: the placement is in the words of another provider than the environment's.
	ErrOtherProvider = errors.New("another provider")
	// ErrNotLeader: the unit does not lead its service (any more).
	ErrNotLeader = errors.New("not the leader")
	// ErrMoved: the environment has left this store for another.
	ErrMoved = fmt.Errorf("it has moved: %w", store.ErrStoreGone)
	// ErrFormat: the store holds no environment, or one of another format.
	ErrFormat = errors.New("unknown format")
)

// Those of the key-value layer and of the stores that users of this package meet; see keyspace.
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

// Replaced is a store that was replaced while it was open; it is an ErrStoreGone.
type Replaced = keyspace.Replaced

// refuse returns an error with its own message that errors.Is takes for kind.
func refuse(kind error, format string, args ...any) error {
	return keyspace.Refuse(kind, format, args...)
}

// IgnoreNotFound returns err, or nil for ErrNotFound. Callers use it for records that may have gone by
// themselves meanwhile.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}

	return err
}

// Truncate cuts a text to at most maxBytes, between two characters, and ends it with how many bytes
// were cut off. Secrets in one that is too long are hidden first: nothing tells that half a URL holds
// a password. maxBytes must have room for the words at the end, which take 50 bytes at most.
func Truncate(message string, maxBytes int) string {
	if len(message) <= maxBytes {
		return message
	}

	message = text.HideSecrets(message)
	if len(message) <= maxBytes {
		return message
	}

	kept := max(0, maxBytes-len(cutMark(len(message))))
	for kept > 0 && !utf8.RuneStart(message[kept]) {
		kept--
	}
	return message[:kept] + cutMark(len(message)-kept)
}

func cutMark(bytes int) string { return fmt.Sprintf("... (%d bytes cut off)", bytes) }

// maxMessageBytes bounds what is kept of a provider's, charm's or agent's message: many
// of them have to fit in one transaction.
const maxMessageBytes = 4 << 10

// FormatVersion is the one that this code reads and writes. An older one would be
// converted on Open; there is none yet.
const FormatVersion = 1

// FormatRecord says what wrote a store.
type FormatRecord struct {
	Format int `json:"format"`
}

// CheckFormat returns an error if this binary cannot read the environment, because it has a different
// format, has moved to a different store, or is here only in part.
func CheckFormat(v *View) error {
	if err := v.checkNotMoved(); err != nil {
		return err
	}
	doc, ok, err := keyspace.Load[FormatRecord](v.keys, keys.Format)
	if err == nil && !ok {
		err = v.checkNotPartial()
	}

	switch {
	case err != nil:
		return err
	case !ok:
		return refuse(ErrFormat, "it does not hold a bijou model")
	case doc.Format != FormatVersion:
		return refuse(
			ErrFormat,
			"its format is %d, and this bijou knows %d only: use the bijou that wrote it, or a newer one",
			doc.Format,
			FormatVersion,
		)
	}

	return nil
}

func (v *View) checkNotMoved() error {
	kv, err := v.keys.GetKV(keys.Moved)
	if err != nil || kv.Revision == 0 {
		return err
	}
	return explainMoved(kv)
}

func explainMoved(kv keyspace.KeyValue) error {
	to, err := keyspace.Decode[MovedRecord](kv)
	if err != nil {
		return err
	}
	return refuse(ErrMoved, "the model has moved to %q", to.To)
}

// checkNotPartial returns ErrFormat if a migration or a restoration to this store was not finished.
func (v *View) checkNotPartial() error {
	left, ok, err := keyspace.Load[PartialCopy](v.keys, keys.PartialCopy)
	if err != nil || !ok {
		return err
	}
	return refuse(ErrFormat, "it holds an incomplete copy of %q", left.From)
}

// PartialCopy is written before anything is copied to a store, and goes when the old
// store is done with. As long as there is no format beside it, the copy is not whole.
type PartialCopy struct {
	Environment string    `json:"environment"` // its uuid
	From        string    `json:"from"`
	Keep        bool      `json:"keep,omitempty"`
	Since       time.Time `json:"since"`
}

// MovedRecord is left in the store that an environment has left.
type MovedRecord struct {
	To    string    `json:"to"`
	Since time.Time `json:"since"`
}

// CopyLockRecord names who copies an environment just now.
type CopyLockRecord struct {
	keyspace.Presence
	To string `json:"to"`
}

// guards returns the guards that stop work on an environment that has moved to another store, and that keep
// agents and leaders from beginning while it is copied.
func guards() []keyspace.Guard {
	return []keyspace.Guard{
		{Key: keys.Moved, Explain: explainMoved},
		{Key: keys.CopyLock, Leased: true, Explain: explainCopyLock},
	}
}

func explainCopyLock(kv keyspace.KeyValue) error {
	by, err := keyspace.Decode[CopyLockRecord](kv)
	if err != nil {
		return err
	}
	return refuse(ErrRunning, "the model is being copied to %q, by process %d on host %q", by.To,
		by.PID, by.Host)
}
