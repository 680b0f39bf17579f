package copying

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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

// acquireCopyLock locks a store's environment. It returns ErrRunning if a key is below one of the prefixes.
func acquireCopyLock(ctx context.Context, st store.Store, to string, unless []string) (*copyLock, error) {
	s := state.OpenIn(st)
	session, err := s.NewSession(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot hold the environment: %w", err)
	}

	l := &copyLock{
		state:   s,
		session: session,
		record:  state.CopyLockRecord{Presence: session.NewPresence(""), To: to},
	}
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
		if !errors.Is(err, errOtherCopyRuns) || l.state.Keys().AwaitAbsent(limit, keys.CopyLock) != nil {
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

// occupantPrefixes returns the prefixes below which all programs write that work on an environment.
func occupantPrefixes() []string { return []string{keys.Presences, keys.Leaders, keys.CopyLock} }

// checkNobodyRuns returns ErrRunning, which names the programs, if there are keys below the prefixes. The
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
			running = append(running,
				fmt.Sprintf("%s (process %d on host %q)", describeWorker(kv.Key), p.PID, p.Host))
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
var errCopyLockLost = fmt.Errorf(
	"the store did not answer for %s, so the hold on the environment was lost: nothing has moved, do it again",
	state.SessionTTL,
)

// isStoreLocal reports whether a key is the store's own affair, and not the environment's.
func isStoreLocal(key string) bool {
	return slices.Contains([]string{keys.Format, keys.PartialCopy, keys.Moved, keys.CopyLock}, key) ||
		strings.HasPrefix(key, keys.Presences) || strings.HasPrefix(key, keys.Leaders) ||
		strings.HasPrefix(key, keys.GatewayLeases)
}

// readContents reads all keys that a migration takes along, in order, except the chunks
// of blobs, which are more than memory should hold: the heads say which there are.
func readContents(ctx context.Context, st store.Store) ([]keyspace.KeyValue, error) {
	return state.Read(ctx, state.OpenIn(st), listContents)
}

func listContents(v *state.View) (all []keyspace.KeyValue, err error) {
	err = listAroundBlobs(v, "", &all)
	all = slices.DeleteFunc(all, func(kv keyspace.KeyValue) bool { return isStoreLocal(kv.Key) })
	slices.SortFunc(all, func(a, b keyspace.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
	return all, err
}

// listAroundBlobs appends all keys below the prefix except those below keyspace.BlobsPrefix. It lists each
// ASCII character after the prefix by itself, since a store lists whole prefixes only. All keys begin with
// a word of package keys.
func listAroundBlobs(v *state.View, prefix string, all *[]keyspace.KeyValue) error {
	if prefix == keyspace.BlobsPrefix {
		return nil
	}

	if prefix != "" {
		kv, err := v.Keys().GetKV(prefix)
		if err != nil {
			return err
		}

		if kv.Revision != 0 {
			*all = append(*all, kv)
		}
	}

	for c := byte(' '); c < 0x7f; c++ {
		next := prefix + string(c)
		if strings.HasPrefix(keyspace.BlobsPrefix, next) {
			if err := listAroundBlobs(v, next, all); err != nil {
				return err
			}
			continue
		}

		kvs, err := v.Keys().List(next)
		if err != nil {
			return err
		}
		*all = append(*all, kvs...)
	}

	return nil
}

func findKey(kvs []keyspace.KeyValue, key string) (keyspace.KeyValue, bool) {
	i, ok := slices.BinarySearchFunc(kvs, key, keyspace.CompareKey)
	if !ok {
		return keyspace.KeyValue{}, false
	}
	return kvs[i], true
}

// blobOf parses a blob's head; ok is false for any other key.
func blobOf(kv keyspace.KeyValue) (sum string, chunks int, ok bool) {
	sum, ok = strings.CutPrefix(kv.Key, keyspace.BlobHeadsPrefix)
	if !ok {
		return "", 0, false
	}
	head, err := keyspace.DecodeBlobHead(kv)
	if err != nil {
		return "", 0, false
	}

	return sum, head.Chunks(), true
}

func countChunks(all []keyspace.KeyValue) (n int) {
	for _, kv := range all {
		_, count, _ := blobOf(kv)
		n += count
	}
	return n
}

func readValue(ctx context.Context, st store.Store, key string) (value []byte, ok bool, err error) {
	err = state.OpenIn(st).View(ctx, func(v *state.View) error {
		value, ok, err = v.Keys().Get(key)
		return err
	})
	return value, ok, err
}

func readRecord[T any](ctx context.Context, s *state.State, key string) (doc T, ok bool, err error) {
	err = s.View(ctx, func(v *state.View) error {
		doc, ok, err = keyspace.Load[T](v.Keys(), key)
		return err
	})
	return doc, ok, err
}

// beginCopy marks a store as the beginning of a copy, which is no environment yet, unless check refuses the
// store. A store that was empty when it was read must stay empty until this commit.
func beginCopy(
	ctx context.Context,
	to *state.State,
	draft state.PartialCopy,
	empty bool,
	check func(tx *state.Tx, empty bool) error,
) error {
	draft.Since = time.Now().UTC()

	return to.Update(ctx, func(tx *state.Tx) (err error) {
		still := empty
		if empty {
			kvs, err := tx.Keys().List("") // there is little; the commit becomes conditional on it
			if err != nil {
				return err
			}
			still = !slices.ContainsFunc(kvs, func(kv keyspace.KeyValue) bool { return !isStoreLocal(kv.Key) })
		}

		if err := check(tx, still); err != nil {
			return err
		}

		tx.Keys().Remove(keys.Format)
		tx.Keys().Remove(keys.Moved)
		return tx.Keys().Put(keys.PartialCopy, draft)
	})
}
