package copying

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/store"
)

// copyLock is the right to copy what is in a store, or to copy to it.
type copyLock struct {
	state   *state.State
	session *keyspace.Session
	record  state.CopyLockRecord
}

// acquireCopyLock locks what is in a store, unless a key is below one of the prefixes:
// ErrRunning.
func acquireCopyLock(ctx context.Context, st store.Store, to string, unless []string) (*copyLock, error) {
	s := state.OpenIn(st)
	session, err := s.Space().NewSession(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot hold the environment: %w", err)
	}
	l := &copyLock{state: s, session: session, record: state.CopyLockRecord{Presence: session.NewPresence(""), To: to}}
	if err := l.acquire(ctx, unless); err != nil {
		return nil, errors.Join(err, l.release(ctx))
	}
	return l, nil
}

// acquire waits until the lease of a migration that has died has expired.
func (l *copyLock) acquire(ctx context.Context, unless []string) error {
	limit, cancel := context.WithTimeout(ctx, 2*state.SessionTTL)
	defer cancel()
	for {
		err := l.state.Update(ctx, func(tx *state.Tx) error {
			for _, key := range []string{keys.Moved, keys.CopyLock} { // they may be there
				if _, _, err := tx.Keys().Get(key); err != nil {
					return err
				}
			}
			if err := checkNobodyRuns(tx, unless); err != nil {
				return err
			}
			return tx.Keys().PutLeased(keys.CopyLock, l.record, l.session)
		})
		if !errors.Is(err, errOtherCopyRuns) || l.state.Space().AwaitAbsent(limit, keys.CopyLock) != nil {
			return err
		}
	}
}

var errOtherCopyRuns = fmt.Errorf("another migration: %w", state.ErrRunning)

// release lets agents announce themselves again.
func (l *copyLock) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := l.session.Close(ctx); err != nil && !errors.Is(err, store.ErrStoreGone) {
		return fmt.Errorf("cannot let go of the environment; it is free in %s: %w", state.SessionTTL, err)
	}
	return nil
}

// occupantPrefixes are below which those who work on an environment write.
func occupantPrefixes() []string { return []string{keys.Presences, keys.Leaders, keys.CopyLock} }

// checkNobodyRuns returns ErrRunning with those who have keys below the prefixes. The
// commit becomes conditional on there being none.
func checkNobodyRuns(tx *state.Tx, prefixes []string) error {
	var running []string
	for _, prefix := range prefixes {
		kvs, err := tx.Keys().List(prefix)
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
		return keyspace.Refuse(errOtherCopyRuns, "there still runs: %s", running[0])
	}
	const shown = 10
	text := strings.Join(running[:min(shown, len(running))], ", ")
	if more := len(running) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return keyspace.Refuse(state.ErrRunning, "there still run: %s", text)
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
var errCopyLockLost = fmt.Errorf("the store did not answer for %s, so the hold on the environment was lost: nothing has moved, do it again", state.SessionTTL)
