package copying

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/store"
	"bijou/state/storeurl"
)

// Migration is the move of an environment whose agents are all stopped from one store to another.
type Migration struct {
	From, To string // URLs

	// Switch makes To what everybody opens from now on. It is called once the new
	// store holds all, and the old one can neither be opened nor written to.
	Switch func() error
	// Keep leaves the old store where it is, marked as moved.
	Keep bool
	// Progress is told of each key and chunk that is copied, and then compared.
	Progress keyspace.Progress
	// Fault, unless it is nil, is called at named points, for tests to end the
	// process there: migrate-batch, migrate-moved, migrate-founded, migrate-switched.
	Fault func(point string)
}

// CopySummary sums up what a migration has copied, and found to be the same in both stores.
type CopySummary struct {
	Keys   int    // those of blobs among them
	Bytes  int64  // of the keys and their values
	SHA256 string // of all of them in order, in hex
}

// Migrate moves an environment to a different store. Leases, presence and leaders stay behind. The old
// store remains the environment until one commit marks it as moved, on condition that nothing has changed
// since it was read. From then on the new store is the environment. After an interruption call Migrate
// again or, if it has called Switch, FinishMigration.
//
// It returns ErrRunning if an agent or a provisioner runs. It returns ErrStoreExists if the store To holds
// anything but the leftovers of a migration of this environment.
func Migrate(ctx context.Context, m Migration) (c CopySummary, err error) {
	from, err := storeurl.Open(ctx, m.From)
	if err != nil {
		return c, fmt.Errorf("cannot open %q: %w", m.From, err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()

	source, err := lockSource(ctx, from, m.To)
	if err != nil {
		return c, err
	}
	to, err := storeurl.Create(ctx, m.To)
	if err != nil {
		return c, errors.Join(err, source.release(ctx))
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	c, err = source.moveTo(ctx, m, to)
	if err = errors.Join(err, source.release(ctx)); err != nil {
		return c, err
	}
	return c, m.finishMove(ctx, to)
}

// FinishMigration does the rest of a migration to the store at the URL after its Switch.
// It returns ErrNotFound if there is none.
func FinishMigration(ctx context.Context, url string) (err error) {
	to, err := storeurl.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	draft, ok, err := readRecord[state.PartialCopy](ctx, state.OpenIn(to), keys.PartialCopy)
	if err != nil {
		return err
	}
	if !ok {
		return keyspace.Refuse(state.ErrNotFound, "no migration to %q is under way", url)
	}

	m := Migration{From: draft.From, To: url, Keep: draft.Keep}
	return m.finishMove(ctx, to)
}

func callFault(fault func(point string), point string) {
	if fault != nil {
		fault(point)
	}
}

// maxCopyRounds bounds how often what operators change meanwhile is copied after.
const maxCopyRounds = 20

// moveTo copies the environment to the other store, again while operators change it meanwhile. Then it makes
// the copy the environment.
func (s *migrationSource) moveTo(ctx context.Context, m Migration, to store.Store) (c CopySummary, err error) {
	if err := s.prepareTarget(ctx, m, to); err != nil {
		return c, err
	}

	for range maxCopyRounds {
		c, err = s.copyTo(ctx, m, to)
		if !errors.Is(err, store.ErrConflict) &&
			!errors.Is(err, store.ErrHistoryLost) {
			break
		}
	}

	if err != nil {
		return c, fmt.Errorf("cannot copy the model: %w", err)
	}

	callFault(m.Fault, "migrate-moved")
	if _, err := to.Commit(ctx, store.Txn{Ops: []store.Op{{Key: keys.Format, Value: s.format}}}); err != nil {
		return c, fmt.Errorf("cannot make the copy a model: %w", err)
	}

	callFault(m.Fault, "migrate-founded")
	if err := m.Switch(); err != nil {
		return c, err
	}

	callFault(m.Fault, "migrate-switched")
	return c, nil
}

// finishMove removes the old store, unless it is kept, and the note about the migration.
func (m Migration) finishMove(ctx context.Context, to store.Store) error {
	if !m.Keep {
		if err := removeMovedStore(ctx, m.From); err != nil {
			return err
		}
	}

	_, err := to.Commit(ctx, store.Txn{Ops: []store.Op{{Key: keys.PartialCopy, Delete: true}}})
	return err
}

// removeMovedStore removes the store at the URL if it is marked as moved.
func removeMovedStore(ctx context.Context, url string) error {
	st, err := storeurl.Open(ctx, url)
	if errors.Is(err, state.ErrNoStore) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot remove the old store: %w", err)
	}

	_, left, err := readRecord[state.MovedRecord](ctx, state.OpenIn(st), keys.Moved)
	err = errors.Join(err, st.Close())
	if err != nil || !left {
		return err // somebody else's by now
	}

	return storeurl.Remove(ctx, url)
}

// migrationSource is the store that an environment leaves. As long as it is locked, no
// agent announces itself there and nobody campaigns.
type migrationSource struct {
	*copyLock
	state  *state.State
	uuid   string
	format []byte
}

// lockSource locks the environment in the store for a migration to that URL. It returns ErrRunning if an
// agent, a provisioner or another migration works there.
func lockSource(ctx context.Context, from store.Store, to string) (*migrationSource, error) {
	s := &migrationSource{state: state.OpenIn(from)}
	err := s.state.View(ctx, func(v *state.View) error {
		// Moved: an earlier migration was cut off.
		if err := state.CheckFormat(v); err != nil && !errors.Is(err, state.ErrMoved) {
			return err
		}
		format, _, err := v.Keys().Get(keys.Format)
		if err != nil {
			return err
		}
		s.format = slices.Clone(format)

		env, err := v.Environment()
		s.uuid = env.UUID
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.copyLock, err = acquireCopyLock(ctx, from, to, occupantPrefixes()); err != nil {
		return nil, err
	}

	return s, nil
}

// prepareTarget refuses a store that is neither empty nor left by a migration of the same environment.
func (s *migrationSource) prepareTarget(ctx context.Context, m Migration, to store.Store) error {
	target := state.OpenIn(to)
	own, same, err := readRecord[state.CopyLockRecord](ctx, target, keys.CopyLock)
	if err != nil {
		return err
	}
	if same && own.Session == s.record.Session {
		return keyspace.Refuse(state.ErrStoreExists,
			"cannot migrate to %q: the model is there already", m.To)
	}

	there, err := readContents(ctx, to)
	if err != nil {
		return err
	}

	draft := state.PartialCopy{Environment: s.uuid, From: m.From, Keep: m.Keep}
	return beginCopy(ctx, target, draft, len(there) == 0, func(tx *state.Tx, empty bool) error {
		return s.checkTarget(tx, m.To, empty)
	})
}

// checkTarget returns ErrStoreExists if the store at url holds anything but the leftovers of a migration of
// this environment. empty says that it has no keys.
func (s *migrationSource) checkTarget(tx *state.Tx, url string, empty bool) error {
	left, draftThere, err := keyspace.Load[state.PartialCopy](tx.Keys(), keys.PartialCopy)
	if err != nil {
		return err
	}

	_, movedThere, err := keyspace.Load[state.MovedRecord](tx.Keys(), keys.Moved)
	if err != nil {
		return err
	}
	if err := checkUnused(tx, occupantPrefixes()); err != nil {
		return err
	}

	env, err := tx.Environment()
	switch {
	case err != nil && !errors.Is(err, state.ErrNotFound):
		return err
	case draftThere && left.Environment != s.uuid:
		return keyspace.Refuse(state.ErrStoreExists,
			"cannot migrate to %q: it holds an incomplete copy of a different model, from %q", url, left.From)
	case draftThere, movedThere && env.UUID == s.uuid, empty:
		return nil
	case env.Name != "":
		return keyspace.Refuse(state.ErrStoreExists, "cannot migrate to %q: it holds the model %q", url,
			env.Name)
	}

	return keyspace.Refuse(state.ErrStoreExists, "cannot migrate to %q: it is not empty", url)
}

// lockedRevision returns the store's newest revision, if the lock is still held at it.
func (s *migrationSource) lockedRevision(ctx context.Context) (revision int64, err error) {
	err = s.state.View(ctx, func(v *state.View) error {
		lock, _, err := keyspace.Load[state.CopyLockRecord](v.Keys(), keys.CopyLock)
		if err != nil {
			return err
		}
		if lock.Session != s.record.Session {
			return errCopyLockLost
		}
		revision, err = v.Revision()
		return err
	})

	return revision, err
}

// markMoved returns ErrConflict if anything has changed in the old store since the revision.
func (s *migrationSource) markMoved(ctx context.Context, to string, revision int64) error {
	value, err := keyspace.Encode(keys.Moved, state.MovedRecord{To: to, Since: time.Now().UTC()})
	if err != nil {
		return err
	}

	_, err = s.state.Store().Commit(ctx, store.Txn{
		Conds: []store.Cond{{Prefix: "", Revision: revision}},
		Ops:   []store.Op{{Key: keys.Moved, Value: value}},
	})

	return err
}

// copyTo copies the old store to the new one, reads all of it back, and marks the old one as moved. It
// returns ErrConflict if the old one has changed meanwhile.
func (s *migrationSource) copyTo(ctx context.Context, m Migration, to store.Store) (CopySummary, error) {
	revision, err := s.lockedRevision(ctx)
	if err != nil {
		return CopySummary{}, err
	}
	all, err := readContents(ctx, s.state.Store())
	if err != nil {
		return CopySummary{}, err
	}

	chunk := func(ctx context.Context, sum string, n int) ([]byte, bool, error) {
		return readValue(ctx, s.state.Store(), keyspace.ChunkKey(sum, n))
	}
	c := &copier{chunk: chunk, to: to, progress: m.Progress, fault: m.Fault, lockLost: s.session.Done()}
	back, err := c.copyAll(ctx, all)
	if err != nil {
		return back, err
	}

	return back, s.markMoved(ctx, m.To, revision)
}
