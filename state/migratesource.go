package state

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/state/store"
)

// migrationSource is the store that an environment leaves. As long as it is held, no agent
// announces itself there and nobody campaigns.
type migrationSource struct {
	*copyLock
	state  *State
	uuid   string
	format []byte
}

// copyLockRecord is who copies an environment just now.
type copyLockRecord struct {
	presence
	To string `json:"to"`
}

// lockSource holds the environment in the store, for a migration to that URL.
// ErrRunning: an agent, a provisioner or another migration is at work there.
func lockSource(ctx context.Context, from store.Store, to string) (*migrationSource, error) {
	s := &migrationSource{state: &State{store: from}}
	err := s.state.View(ctx, func(v *View) error {
		if err := checkFormat(v); err != nil && !errors.Is(err, ErrMoved) { // moved: an earlier migration was cut off
			return err
		}
		format, _, err := v.get(formatKey)
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
	if s.copyLock, err = acquireCopyLock(ctx, from, to, workerPrefixes()); err != nil {
		return nil, err
	}
	return s, nil
}

// copyLock is the right to copy what is in a store, or to copy to it.
type copyLock struct {
	state  *State
	lease  store.Lease
	record copyLockRecord
}

// acquireCopyLock holds what is in a store, unless there is a key below the prefixes.
func acquireCopyLock(ctx context.Context, st store.Store, to string, unless []string) (*copyLock, error) {
	lease, err := st.Lease(ctx, SessionTTL)
	if err != nil {
		return nil, fmt.Errorf("cannot hold the environment: %w", err)
	}
	self := &Session{id: rand.Text()}
	h := &copyLock{state: &State{store: st}, lease: lease, record: copyLockRecord{presence: self.newPresence(""), To: to}}
	if err := h.acquire(ctx, unless); err != nil {
		return nil, errors.Join(err, h.release(ctx))
	}
	return h, nil
}

// acquire takes the hold. That of a migration which has died is waited for.
func (h *copyLock) acquire(ctx context.Context, unless []string) error {
	limit, cancel := context.WithTimeout(ctx, 2*SessionTTL)
	defer cancel()
	for {
		err := h.state.Update(ctx, func(tx *Tx) error {
			if _, _, err := tx.get(movedKey); err != nil { // it may be there
				return err
			}
			if err := tx.checkNobodyRuns(unless); err != nil {
				return err
			}
			return tx.putLeased(copyLockKey, h.record, h.lease.ID())
		})
		if !errors.Is(err, errOtherCopyRuns) || h.state.awaitAbsent(limit, copyLockKey) != nil {
			return err
		}
	}
}

// errOtherCopyRuns: nobody runs but another migration.
var errOtherCopyRuns = fmt.Errorf("another migration: %w", ErrRunning)

// release lets agents announce themselves again, where that is possible.
func (h *copyLock) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := h.lease.Close(ctx); err != nil && !errors.Is(err, store.ErrStoreGone) {
		return fmt.Errorf("cannot let go of the environment; it is free in %s: %w", SessionTTL, err)
	}
	return nil
}

// workerPrefixes are those of who is at work on an environment.
func workerPrefixes() []string { return []string{presencePrefix, leadersPrefix, copyLockKey} }

// checkNobodyRuns is ErrRunning with who does, by the prefixes. The commit becomes
// conditional on it.
func (tx *Tx) checkNobodyRuns(prefixes []string) error {
	var running []string
	for _, prefix := range prefixes {
		kvs, err := tx.list(prefix)
		if err != nil {
			return err
		}
		for _, kv := range kvs {
			p, err := decode[presence](kv)
			if err != nil {
				return err
			}
			running = append(running, fmt.Sprintf("%s (process %d on host %q)", describeWorker(kv.Key), p.PID, p.Host))
		}
	}
	if len(running) == 0 {
		return nil
	}
	if len(running) == 1 && strings.HasPrefix(running[0], otherCopy) {
		return refuse(errOtherCopyRuns, "there still runs: %s", running[0])
	}
	const shown = 10
	text := strings.Join(running[:min(shown, len(running))], ", ")
	if more := len(running) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return refuse(ErrRunning, "there still run: %s", text)
}

// describeWorker names for people who has written that key.
func describeWorker(key string) string {
	if agent, ok := strings.CutPrefix(key, presencePrefix); ok {
		return "agent " + agent
	}
	if what, ok := strings.CutPrefix(key, leadersPrefix); ok {
		return "the leader of " + what
	}
	return otherCopy
}

const otherCopy = "another migration"

// prepareTarget makes sure that the new store is one to copy to: an empty one, or what a
// migration of the same environment has left.
func (s *migrationSource) prepareTarget(ctx context.Context, m Migration, to store.Store) error {
	target := &State{store: to}
	own, same, err := readRecord[copyLockRecord](ctx, target, copyLockKey)
	if err != nil {
		return err
	}
	if same && own.Session == s.record.Session {
		return refuse(ErrStoreExists, "cannot migrate to %q: the environment lies there already", m.To)
	}
	empty, err := isEmpty(ctx, to)
	if err != nil {
		return err
	}
	return target.Update(ctx, func(tx *Tx) error {
		if empty { // to be so until this is committed; now that is little to read
			if empty, err = tx.isStillEmpty(); err != nil {
				return err
			}
		}
		if err := s.checkTarget(tx, m.To, empty); err != nil {
			return err
		}
		tx.remove(formatKey)
		tx.remove(movedKey)
		return tx.put(partialCopyKey, partialCopy{Environment: s.uuid, From: m.From, Keep: m.Keep, Since: time.Now().UTC()})
	})
}

// isStillEmpty is isEmpty, of a store that was so. The commit becomes conditional on
// nothing changing there.
func (tx *Tx) isStillEmpty() (bool, error) {
	kvs, err := tx.list("")
	return !slices.ContainsFunc(kvs, func(kv store.KV) bool { return !isStoreLocal(kv.Key) }), err
}

// checkTarget refuses a store that holds anything else.
func (s *migrationSource) checkTarget(tx *Tx, url string, empty bool) error {
	left, draftThere, err := load[partialCopy](tx.View, partialCopyKey)
	if err != nil {
		return err
	}
	_, movedThere, err := load[movedRecord](tx.View, movedKey)
	if err != nil {
		return err
	}
	if err := tx.checkNobodyRuns(workerPrefixes()); err != nil {
		return err
	}
	env, err := tx.Environment()
	switch {
	case err != nil && !errors.Is(err, ErrNotFound):
		return err
	case draftThere && left.Environment != s.uuid:
		return refuse(ErrStoreExists, "cannot migrate to %q: there lies half of another environment, from %q", url, left.From)
	case draftThere, movedThere && env.UUID == s.uuid, empty:
		return nil
	case env.Name != "":
		return refuse(ErrStoreExists, "cannot migrate to %q: it holds the environment %q", url, env.Name)
	}
	return refuse(ErrStoreExists, "cannot migrate to %q: it is not empty", url)
}

// errCopyLockLost: agents may have begun again.
var errCopyLockLost = fmt.Errorf("the store did not answer for %s, so the hold on the environment was lost: nothing has moved, do it again", SessionTTL)

// lockedRevision is the store's newest revision, as long as the hold stands there.
func (s *migrationSource) lockedRevision(ctx context.Context) (revision int64, err error) {
	err = s.state.View(ctx, func(v *View) error {
		hold, _, err := load[copyLockRecord](v, copyLockKey)
		if err != nil {
			return err
		}
		if hold.Session != s.record.Session {
			return errCopyLockLost
		}
		revision, err = v.Revision()
		return err
	})
	return revision, err
}

// markMoved marks the old store as moved, if nothing has changed there since the
// revision: ErrConflict otherwise.
func (s *migrationSource) markMoved(ctx context.Context, to string, revision int64) error {
	value, err := encode(movedKey, movedRecord{To: to, Since: time.Now().UTC()})
	if err != nil {
		return err
	}
	_, err = s.state.store.Commit(ctx, store.Txn{
		Conds: []store.Cond{{Prefix: "", Revision: revision}},
		Ops:   []store.Op{{Key: movedKey, Value: value}},
	})
	return err
}

// writeFormat makes the copy in a store an environment.
func writeFormat(ctx context.Context, to store.Store, format []byte) error {
	_, err := to.Commit(ctx, store.Txn{Ops: []store.Op{{Key: formatKey, Value: format}}})
	if err != nil {
		return fmt.Errorf("cannot make the copy an environment: %w", err)
	}
	return nil
}
