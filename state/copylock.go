package state

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"bijou/state/store"
)

// copyLock is the right to copy what is in a store, or to copy to it.
type copyLock struct {
	state  *State
	lease  store.Lease
	record copyLockRecord
}

// acquireCopyLock locks what is in a store, unless a key is below one of the prefixes:
// ErrRunning.
func acquireCopyLock(ctx context.Context, st store.Store, to string, unless []string) (*copyLock, error) {
	lease, err := st.Lease(ctx, SessionTTL)
	if err != nil {
		return nil, fmt.Errorf("cannot hold the environment: %w", err)
	}
	self := &Session{id: rand.Text()}
	l := &copyLock{state: &State{store: st}, lease: lease, record: copyLockRecord{presence: self.newPresence(""), To: to}}
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
			if _, _, err := tx.get(movedKey); err != nil { // it may be there
				return err
			}
			if err := tx.checkNobodyRuns(unless); err != nil {
				return err
			}
			return tx.putLeased(copyLockKey, l.record, l.lease.ID())
		})
		if !errors.Is(err, errOtherCopyRuns) || l.state.awaitAbsent(limit, copyLockKey) != nil {
			return err
		}
	}
}

var errOtherCopyRuns = fmt.Errorf("another migration: %w", ErrRunning)

// release lets agents announce themselves again.
func (l *copyLock) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := l.lease.Close(ctx); err != nil && !errors.Is(err, store.ErrStoreGone) {
		return fmt.Errorf("cannot let go of the environment; it is free in %s: %w", SessionTTL, err)
	}
	return nil
}

// occupantPrefixes are below which those who work on an environment write.
func occupantPrefixes() []string { return []string{presencePrefix, leadersPrefix, copyLockKey} }

// checkNobodyRuns returns ErrRunning with those who have keys below the prefixes. The
// commit becomes conditional on there being none.
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

// errCopyLockLost: agents may have begun again.
var errCopyLockLost = fmt.Errorf("the store did not answer for %s, so the hold on the environment was lost: nothing has moved, do it again", SessionTTL)
