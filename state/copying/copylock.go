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

// copyLock is the exclusive right to copy an environment from a store, or to a store.
type copyLock struct {
	state   *state.State
	session *keyspace.Session
	record  state.CopyLockRecord
}

// acquireCopyLock locks a store's environment for a copy. to is the URL of the store that will have the copy,
// and appears in the lock's record. acquireCopyLock returns [state.ErrRunning] if a program holds a key below
// one of the prefixes. It first waits if only another migration or restoration is in the way; see acquire.
func acquireCopyLock(ctx context.Context, st store.Store, to string, prefixes []string) (*copyLock, error) {
	s := state.OpenIn(st)
	session, err := s.NewSession(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the model: %w", err)
	}

	l := &copyLock{
		state:   s,
		session: session,
		record:  state.CopyLockRecord{Presence: session.NewPresence(""), To: to}, // the presence has no unit
	}
	if err := l.acquire(ctx, prefixes); err != nil {
		return nil, errors.Join(err, l.release(ctx))
	}

	return l, nil
}

// acquire commits the lock's record. If a program holds a key below one of the prefixes, it instead returns the
// error of checkUnused. But if the only such program is another migration or restoration, acquire first waits up
// to twice SessionTTL for its end, since that program may have been killed.
func (l *copyLock) acquire(ctx context.Context, prefixes []string) error {
	limit, cancel := context.WithTimeout(ctx, 2*state.SessionTTL)
	defer cancel()

	for {
		err := l.state.Update(ctx, func(tx *state.Tx) error {
			// The guards of state would refuse the commit if one of these keys exists, unless the transaction has
			// read the key. After the read, the commit fails if the key changes.
			for _, key := range []string{keys.Moved, keys.CopyLock} {
				if _, _, err := tx.Keys().Get(key); err != nil {
					return err
				}
			}

			if err := checkUnused(tx, prefixes); err != nil {
				return err
			}

			return tx.Keys().PutLeased(keys.CopyLock, l.record, l.session)
		})
		if !errors.Is(err, errOtherCopyRuns) {
			return err
		}
		// If the other program does not end in time, return the error that names it.
		if l.state.Keys().AwaitAbsent(limit, keys.CopyLock) != nil {
			return err
		}
	}
}

// errOtherCopyRuns is returned if another migration or restoration holds the lock, and no other program uses the
// store. acquire then waits until that migration or restoration has ended.
var errOtherCopyRuns = fmt.Errorf("another migration: %w", state.ErrRunning)

// release ends the lock's session, which removes the lock. The lock then no longer keeps agents from announcing
// themselves.
func (l *copyLock) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()

	// A store that is gone needs no unlock.
	if err := l.session.Close(ctx); err != nil && !errors.Is(err, store.ErrStoreGone) {
		return fmt.Errorf("cannot unlock the model; the lock expires in %s: %w", state.SessionTTL, err)
	}

	return nil
}

// occupantPrefixes returns the prefixes of the keys that programs hold while they work on an environment.
func occupantPrefixes() []string { return []string{keys.Presences, keys.Leaders, keys.CopyLock} }

// checkUnused returns nil if no program holds a key below one of the prefixes. If the only such program is
// another migration or restoration, it returns errOtherCopyRuns. If other programs hold keys, it returns
// [state.ErrRunning]. The error's message names at most maxShown programs. Since checkUnused lists the prefixes
// in tx, the commit fails if such a key appears in the meantime.
func checkUnused(tx *state.Tx, prefixes []string) error {
	var programs []string
	isOnlyCopy := true
	for _, prefix := range prefixes {
		kvs, err := tx.Keys().List(prefix)
		if err != nil {
			return err
		}

		for _, kv := range kvs {
			p, err := keyspace.Decode[keyspace.Presence](kv)
			// A presence that does not decode still means that a program is running.
			if err != nil && !tx.Keys().Skips(err) {
				return err
			}

			programs = append(programs,
				fmt.Sprintf("%s (process %d on host %q)", describeProgram(kv.Key), p.PID, p.Host))
			isOnlyCopy = isOnlyCopy && kv.Key == keys.CopyLock
		}
	}

	if len(programs) == 0 {
		return nil
	}
	if isOnlyCopy {
		return keyspace.Refuse(errOtherCopyRuns, "still running: %s", strings.Join(programs, ", "))
	}

	const maxShown = 10
	text := strings.Join(programs[:min(maxShown, len(programs))], ", ")
	if more := len(programs) - maxShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return keyspace.Refuse(state.ErrRunning, "still running: %s", text)
}

// describeProgram returns the words for the program that holds the key, which is below one of
// [occupantPrefixes].
func describeProgram(key string) string {
	if agent, ok := strings.CutPrefix(key, keys.Presences); ok {
		return "agent " + agent
	}
	if role, ok := strings.CutPrefix(key, keys.Leaders); ok {
		return "the leader of " + role
	}

	// The key is keys.CopyLock.
	return "another migration"
}

// errCopyLockLost is returned if the lock's lease has expired during a copy. Agents may have started since
// then.
var errCopyLockLost = fmt.Errorf(
	"the store did not answer for %s, so the lock on the model was lost; nothing was moved: run the command again",
	state.SessionTTL,
)

// isStoreLocal reports whether a key describes this store, or a program that uses it now. Such a key is not a
// part of the environment, and is not copied.
func isStoreLocal(key string) bool {
	switch key {
	case keys.Format, keys.PartialCopy, keys.Moved, keys.CopyLock:
		return true
	}

	return strings.HasPrefix(key, keys.Presences) ||
		strings.HasPrefix(key, keys.Leaders) ||
		strings.HasPrefix(key, keys.GatewayLeases)
}

// readContents reads a store's contents: all keys that a migration copies, in order. It does not read the
// chunks of blobs, which may not fit into memory. The heads of the blobs show which chunks exist.
func readContents(ctx context.Context, st store.Store) ([]keyspace.KeyValue, error) {
	return state.Read(ctx, state.OpenIn(st), listContents)
}

// listContents returns the contents of the view's store, as [readContents] does for a store.
func listContents(v *state.View) ([]keyspace.KeyValue, error) {
	var contents []keyspace.KeyValue
	if err := listAroundBlobs(v, "", &contents); err != nil {
		return nil, err
	}

	contents = slices.DeleteFunc(contents, func(kv keyspace.KeyValue) bool { return isStoreLocal(kv.Key) })
	slices.SortFunc(contents, func(a, b keyspace.KeyValue) int { return cmp.Compare(a.Key, b.Key) })
	return contents, nil
}

// listAroundBlobs appends to found all keys below the prefix, except those below keyspace.BlobsPrefix, whose values
// may not fit into memory. A store can list only whole prefixes. So where BlobsPrefix begins with the prefix,
// listAroundBlobs lists the keys separately for each character that can follow the prefix. It finds only keys of
// printable ASCII characters.
func listAroundBlobs(v *state.View, prefix string, found *[]keyspace.KeyValue) error {
	if prefix == keyspace.BlobsPrefix {
		return nil
	}

	// The longer prefixes do not cover the key that is equal to the prefix. Its revision is 0 if it does not exist.
	if prefix != "" {
		kv, err := v.Keys().GetKV(prefix)
		if err != nil {
			return err
		}
		if kv.Revision != 0 {
			*found = append(*found, kv)
		}
	}

	for c := byte(' '); c < 0x7f; c++ {
		longer := prefix + string(c)
		if strings.HasPrefix(keyspace.BlobsPrefix, longer) {
			if err := listAroundBlobs(v, longer, found); err != nil {
				return err
			}
			continue
		}

		kvs, err := v.Keys().List(longer)
		if err != nil {
			return err
		}
		*found = append(*found, kvs...)
	}

	return nil
}

// findKey returns the entry of a key in kvs, which must be sorted by key.
func findKey(kvs []keyspace.KeyValue, key string) (keyspace.KeyValue, bool) {
	i, ok := slices.BinarySearchFunc(kvs, key, keyspace.CompareKey)
	if !ok {
		return keyspace.KeyValue{}, false
	}
	return kvs[i], true
}

// blobOf parses a blob's head, and returns the blob's sum and number of chunks. It returns ok false for any
// other key, and for a head that does not decode.
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

// blobChunks does what blobOf does, but returns 0 chunks instead of ok false.
func blobChunks(kv keyspace.KeyValue) (sum string, chunks int) {
	sum, chunks, _ = blobOf(kv)
	return sum, chunks
}

// countChunks returns the number of chunks of all blobs whose heads are among the keys.
func countChunks(kvs []keyspace.KeyValue) (n int) {
	for _, kv := range kvs {
		_, chunks := blobChunks(kv)
		n += chunks
	}
	return n
}

// readValue returns the value of one key. It returns ok false if the store does not have the key.
func readValue(ctx context.Context, st store.Store, key string) (value []byte, ok bool, err error) {
	err = state.OpenIn(st).View(ctx, func(v *state.View) error {
		value, ok, err = v.Keys().Get(key)
		return err
	})
	return value, ok, err
}

// readRecord returns the record of one key. It returns ok false if the store does not have the key.
func readRecord[T any](ctx context.Context, s *state.State, key string) (doc T, ok bool, err error) {
	err = s.View(ctx, func(v *state.View) error {
		doc, ok, err = keyspace.Load[T](v.Keys(), key)
		return err
	})
	return doc, ok, err
}

// beginCopy marks the store as an unfinished copy, so that no program uses it as an environment: it writes
// draft to keys.PartialCopy, and removes the marks of a complete environment and of one that has moved. It calls
// check in the same transaction, and writes nothing if check returns an error. wasEmpty must be true if the
// store had no contents when the caller read it. check gets isEmpty true if wasEmpty is true and the store
// still has none.
func beginCopy(
	ctx context.Context,
	to *state.State,
	draft state.PartialCopy,
	wasEmpty bool,
	check func(tx *state.Tx, isEmpty bool) error,
) error {
	draft.Since = time.Now().UTC()

	return to.Update(ctx, func(tx *state.Tx) (err error) {
		isEmpty := wasEmpty
		if wasEmpty {
			// A store without contents has few keys. Since all are listed, the commit fails if one is added.
			kvs, err := tx.Keys().List("")
			if err != nil {
				return err
			}
			isContent := func(kv keyspace.KeyValue) bool { return !isStoreLocal(kv.Key) }
			isEmpty = !slices.ContainsFunc(kvs, isContent)
		}

		if err := check(tx, isEmpty); err != nil {
			return err
		}

		// Without its format, no program opens the store until the copy is complete. Programs also
		// refuse a store with the mark of an earlier move away from it.
		tx.Keys().Remove(keys.Format)
		tx.Keys().Remove(keys.Moved)
		return tx.Keys().Put(keys.PartialCopy, draft)
	})
}
