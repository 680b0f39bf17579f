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

	// Switch makes all programs open To from now on. It is called once the new store is complete and the old
	// store is marked as moved. Then nobody can open or write the old store.
	Switch func() error
	// Keep leaves the old store where it is, marked as moved.
	Keep bool
	// Progress receives a report for each key and chunk that is copied, and for each that is compared.
	Progress keyspace.Progress
	// Fault is called at named points, so that tests can kill the process there: migrate-batch, migrate-moved,
	// migrate-founded, migrate-switched. It can be nil.
	Fault func(point string)
}

// CopySummary describes the contents that were copied, and that are the same in both stores.
type CopySummary struct {
	Keys   int    // number of keys, including those of blobs
	Bytes  int64  // size of the keys and their values
	SHA256 string // sum of the keys and their values in order, in hex
}

// Migrate moves an environment to a different store. Leases, presences and leaders are not moved. The old
// store remains the environment until one commit marks it as moved, on condition that nothing has changed
// since it was read. From this commit on, the new store is the environment. At the end Migrate removes the old
// store, unless m.Keep is set. If Migrate was interrupted, the caller must call Migrate again or, if Switch was
// called, FinishMigration.
//
// It returns ErrRunning if one of the stores has a running agent or leader, or the lock of another migration or of
// a restoration. It returns ErrStoreExists if the store To has any contents except the leftovers of a migration of
// this environment.
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
	err = errors.Join(err, source.release(ctx))
	if err != nil {
		return c, err
	}

	return c, m.finishMove(ctx, to)
}

// FinishMigration completes a migration to the store at the URL. The migration must have been interrupted
// after it called Switch. FinishMigration removes the old store, unless the migration's Keep was set. It returns
// ErrNotFound if there is no incomplete migration.
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

// callFault calls fault with the point, unless fault is nil.
func callFault(fault func(point string), point string) {
	if fault != nil {
		fault(point)
	}
}

// maxCopyRounds is how often moveTo copies the environment before it gives up, if operators change the
// environment during each copy.
const maxCopyRounds = 20

// moveTo copies the environment to the new store, makes the copy the environment, and calls m.Switch. If
// operators change the environment during the copy, it copies again, up to maxCopyRounds times in all.
func (s *migrationSource) moveTo(ctx context.Context, m Migration, to store.Store) (c CopySummary, err error) {
	if err := s.prepareTarget(ctx, m, to); err != nil {
		return c, err
	}

	// copyTo also marks the old store as moved, unless the old store has changed during the copy. ErrHistoryLost
	// says that a store no longer keeps the revision at which copyTo reads.
	for range maxCopyRounds {
		c, err = s.copyTo(ctx, m, to)
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrHistoryLost) {
			break
		}
	}
	if err != nil {
		return c, fmt.Errorf("cannot copy the model: %w", err)
	}

	// The format record completes the new store. It must not be written before the old store is marked as
	// moved, since programs could then use both.
	callFault(m.Fault, "migrate-moved")
	if _, err := to.Commit(ctx, store.Txn{Ops: []store.Op{{Key: keys.Format, Value: s.format}}}); err != nil {
		return c, fmt.Errorf("cannot turn the copy into a model: %w", err)
	}

	callFault(m.Fault, "migrate-founded")
	if err := m.Switch(); err != nil {
		return c, err
	}

	callFault(m.Fault, "migrate-switched")
	return c, nil
}

// finishMove removes the old store if it is marked as moved, unless m.Keep is set. Then it removes the record of
// the migration from the new store.
func (m Migration) finishMove(ctx context.Context, to store.Store) error {
	if !m.Keep {
		if err := removeMovedStore(ctx, m.From); err != nil {
			return err
		}
	}

	// The record goes last: after an interruption, FinishMigration reads from it which store to remove.
	_, err := to.Commit(ctx, store.Txn{Ops: []store.Op{{Key: keys.PartialCopy, Delete: true}}})
	return err
}

// removeMovedStore removes the store at the URL if it is marked as moved. It does nothing if there is no store.
func removeMovedStore(ctx context.Context, url string) error {
	st, err := storeurl.Open(ctx, url)
	if errors.Is(err, state.ErrNoStore) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot remove the old store: %w", err)
	}

	_, isMoved, err := readRecord[state.MovedRecord](ctx, state.OpenIn(st), keys.Moved)
	err = errors.Join(err, st.Close())
	if err != nil {
		return err
	}
	// Without the mark, the store at the URL is not the one that was moved.
	if !isMoved {
		return nil
	}

	return storeurl.Remove(ctx, url)
}

// migrationSource is the store from which an environment is moved. While it is locked, agents cannot announce
// themselves and no process can campaign.
type migrationSource struct {
	*copyLock
	state  *state.State
	uuid   string // the environment's
	format []byte // the value of keys.Format
}

// lockSource locks the environment in the old store. to is the URL of the new store. lockSource returns
// ErrRunning if an agent or a leader is running, or if another migration or restoration does not end soon.
func lockSource(ctx context.Context, from store.Store, to string) (*migrationSource, error) {
	s := &migrationSource{state: state.OpenIn(from)}
	err := s.state.View(ctx, func(v *state.View) error {
		// The store is marked as moved if an earlier migration was interrupted. Migrate can then be called again.
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

// prepareTarget marks the new store as an incomplete copy. It returns ErrStoreExists if the new store is also
// the old one, and otherwise the errors of checkTarget.
func (s *migrationSource) prepareTarget(ctx context.Context, m Migration, to store.Store) error {
	target := state.OpenIn(to)
	lock, isLocked, err := readRecord[state.CopyLockRecord](ctx, target, keys.CopyLock)
	if err != nil {
		return err
	}
	// If the target has this migration's own lock, both URLs lead to the same store.
	if isLocked && lock.Session == s.record.Session {
		return keyspace.Refuse(state.ErrStoreExists,
			"cannot migrate to %q: the model is already there", m.To)
	}

	existing, err := readContents(ctx, to)
	if err != nil {
		return err
	}

	draft := state.PartialCopy{Environment: s.uuid, From: m.From, Keep: m.Keep}
	return beginCopy(ctx, target, draft, len(existing) == 0, func(tx *state.Tx, isEmpty bool) error {
		return s.checkTarget(tx, m.To, isEmpty)
	})
}

// checkTarget returns ErrStoreExists unless the store of tx is empty, or holds the leftovers of a migration
// of this environment. url is the URL of that store. It returns ErrRunning if a program uses that store.
func (s *migrationSource) checkTarget(tx *state.Tx, url string, isEmpty bool) error {
	draft, hasDraft, err := keyspace.Load[state.PartialCopy](tx.Keys(), keys.PartialCopy)
	if err != nil {
		return err
	}
	// Only the mark's existence matters, not to which store it leads.
	_, isMoved, err := keyspace.Load[state.MovedRecord](tx.Keys(), keys.Moved)
	if err != nil {
		return err
	}
	if err := checkUnused(tx, occupantPrefixes()); err != nil {
		return err
	}

	env, err := tx.Environment()
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	// An earlier migration from this store to a different store may have left the environment here.
	isOwnOldStore := isMoved && env.UUID == s.uuid

	switch {
	case hasDraft && draft.Environment != s.uuid:
		return keyspace.Refuse(state.ErrStoreExists,
			"cannot migrate to %q: it holds an incomplete copy of a different model, from %q", url, draft.From)
	case hasDraft, isOwnOldStore, isEmpty:
		return nil
	case env.Name != "":
		return keyspace.Refuse(state.ErrStoreExists, "cannot migrate to %q: it holds the model %q", url,
			env.Name)
	}

	return keyspace.Refuse(state.ErrStoreExists, "cannot migrate to %q: it is not empty", url)
}

// lockedRevision returns the old store's newest revision. It returns errCopyLockLost if this migration no
// longer holds the lock at that revision.
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

// markMoved marks the old store as moved. to is the URL of the new store. markMoved returns ErrConflict if
// the old store has changed since the revision, or no longer knows whether it has.
func (s *migrationSource) markMoved(ctx context.Context, to string, revision int64) error {
	value, err := keyspace.Encode(keys.Moved, state.MovedRecord{To: to, Since: time.Now().UTC()})
	if err != nil {
		return err
	}

	_, err = s.state.Store().Commit(ctx, store.Txn{
		Conds: []store.Cond{{Prefix: "", Revision: revision}}, // on all keys
		Ops:   []store.Op{{Key: keys.Moved, Value: value}},
	})

	return err
}

// copyTo copies the old store to the new store, compares both, and marks the old store as moved. It returns
// ErrConflict, and does not mark the old store, if that store has changed during the copy.
func (s *migrationSource) copyTo(ctx context.Context, m Migration, to store.Store) (CopySummary, error) {
	// Read the revision before the contents, so that markMoved notices each change since then.
	revision, err := s.lockedRevision(ctx)
	if err != nil {
		return CopySummary{}, err
	}
	contents, err := readContents(ctx, s.state.Store())
	if err != nil {
		return CopySummary{}, err
	}

	readChunk := func(ctx context.Context, sum string, n int) ([]byte, bool, error) {
		return readValue(ctx, s.state.Store(), keyspace.ChunkKey(sum, n))
	}
	c := &copier{chunk: readChunk, to: to, progress: m.Progress, fault: m.Fault, lockLost: s.session.Done()}
	summary, err := c.copyAll(ctx, contents)
	if err != nil {
		return CopySummary{}, err
	}

	return summary, s.markMoved(ctx, m.To, revision)
}
