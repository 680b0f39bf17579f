package state

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/store"
)

// copyLockRecord names who copies an environment just now.
type copyLockRecord struct {
	keyspace.Presence
	To string `json:"to"`
}

// guards keep what works on an environment away from one that has moved to another store,
// and agents and leaders from beginning while it is copied.
func guards() []keyspace.Guard {
	return []keyspace.Guard{
		{Key: keys.Moved, Explain: explainMoved},
		{Key: keys.CopyLock, Leased: true, Explain: explainCopyLock},
	}
}

func explainCopyLock(kv keyspace.KeyValue) error {
	by, err := keyspace.Decode[copyLockRecord](kv)
	if err != nil {
		return err
	}
	return refuse(ErrRunning, "the environment is being copied to %q, by process %d on host %q", by.To, by.PID, by.Host)
}

// copyLock is the right to copy what is in a store, or to copy to it.
type copyLock struct {
	state   *State
	session *keyspace.Session
	record  copyLockRecord
}

// acquireCopyLock locks what is in a store, unless a key is below one of the prefixes:
// ErrRunning.
func acquireCopyLock(ctx context.Context, st store.Store, to string, unless []string) (*copyLock, error) {
	s := newState(st)
	session, err := s.space.NewSession(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot hold the environment: %w", err)
	}
	l := &copyLock{state: s, session: session, record: copyLockRecord{Presence: session.NewPresence(""), To: to}}
	if err := l.acquire(ctx, unless); err != nil {
		return nil, errors.Join(err, l.release(ctx))
	}
	return l, nil
}

// acquire waits until the lease of a migration that has died has expired.
func (l *copyLock) acquire(ctx context.Context, unless []string) error {
	limit, cancel := context.WithTimeout(ctx, 2*SessionTTL)
	defer cancel()
	for {
		err := l.state.Update(ctx, func(tx *Tx) error {
			for _, key := range []string{keys.Moved, keys.CopyLock} { // they may be there
				if _, _, err := tx.keys.Get(key); err != nil {
					return err
				}
			}
			if err := tx.checkNobodyRuns(unless); err != nil {
				return err
			}
			return tx.keys.PutLeased(keys.CopyLock, l.record, l.session)
		})
		if !errors.Is(err, errOtherCopyRuns) || l.state.space.AwaitAbsent(limit, keys.CopyLock) != nil {
			return err
		}
	}
}

var errOtherCopyRuns = fmt.Errorf("another migration: %w", ErrRunning)

// release lets agents announce themselves again.
func (l *copyLock) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := l.session.Close(ctx); err != nil && !errors.Is(err, store.ErrStoreGone) {
		return fmt.Errorf("cannot let go of the environment; it is free in %s: %w", SessionTTL, err)
	}
	return nil
}

// occupantPrefixes are below which those who work on an environment write.
func occupantPrefixes() []string { return []string{keys.Presences, keys.Leaders, keys.CopyLock} }

// checkNobodyRuns returns ErrRunning with those who have keys below the prefixes. The
// commit becomes conditional on there being none.
func (tx *Tx) checkNobodyRuns(prefixes []string) error {
	var running []string
	for _, prefix := range prefixes {
		kvs, err := tx.keys.List(prefix)
		if err != nil {
			return err
		}
		for _, kv := range kvs {
			p, err := keyspace.Decode[keyspace.Presence](kv)
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

func describeWorker(key string) string {
	if agent, ok := strings.CutPrefix(key, keys.Presences); ok {
		return "agent " + agent
	}
	if what, ok := strings.CutPrefix(key, keys.Leaders); ok {
		return "the leader of " + what
	}
	return otherCopy
}

const otherCopy = "another migration"

// errCopyLockLost: agents may have begun again.
var errCopyLockLost = fmt.Errorf("the store did not answer for %s, so the hold on the environment was lost: nothing has moved, do it again", SessionTTL)
