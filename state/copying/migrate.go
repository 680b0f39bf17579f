package copying

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/store"
	"bijou/state/storeurl"
)

// Migration is the move of an environment whose agents are all stopped from one
// store to another.
type Migration struct {
	From, To string // URLs

	// Switch makes To what everybody opens from now on. It is called once the new
	// store holds all, and the old one can neither be opened nor written to.
	Switch func() error
	// Keep leaves the old store where it is, marked as moved.
	Keep bool
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

// Migrate moves an environment. Leases, presence and leaders stay behind. Until the
// old store is marked as moved, at one instant and only if nothing has changed
// since it was read, that is the environment, whatever happens; from then on it is
// the new one. Whoever is interrupted calls Migrate again, or where Switch was
// called already, FinishMigration.
//
// ErrRunning: an agent or a provisioner runs. ErrStoreExists: To holds something
// else than what a migration of this environment has left.
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
	if err != nil || !ok {
		return cmp.Or(err, keyspace.Refuse(state.ErrNotFound, "there is no migration to %q under way", url))
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

func (s *migrationSource) moveTo(ctx context.Context, m Migration, to store.Store) (c CopySummary, err error) {
	if err := s.prepareTarget(ctx, m, to); err != nil {
		return c, err
	}
	for range maxCopyRounds {
		if c, err = s.copyTo(ctx, m, to); !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrHistoryLost) {
			break
		}
	}
	if err != nil {
		return c, fmt.Errorf("cannot copy the environment: %w", err)
	}
	callFault(m.Fault, "migrate-moved")
	if err := writeFormat(ctx, to, s.format); err != nil {
		return c, err
	}
	callFault(m.Fault, "migrate-founded")
	if err := m.Switch(); err != nil {
		return c, err
	}
	callFault(m.Fault, "migrate-switched")
	return c, nil
}

func (m Migration) finishMove(ctx context.Context, to store.Store) error {
	if !m.Keep {
		if err := removeMovedStore(ctx, m.From); err != nil {
			return err
		}
	}
	_, err := to.Commit(ctx, store.Txn{Ops: []store.Op{{Key: keys.PartialCopy, Delete: true}}})
	return err
}

func removeMovedStore(ctx context.Context, url string) error {
	st, err := storeurl.Open(ctx, url)
	if errors.Is(err, state.ErrNoStore) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot remove the old store: %w", err)
	}
	_, left, err := readRecord[state.MovedRecord](ctx, state.OpenIn(st), keys.Moved)
	if err = errors.Join(err, st.Close()); err != nil || !left {
		return err // somebody else's by now
	}
	return storeurl.Remove(ctx, url)
}
