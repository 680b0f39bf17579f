package copying

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/store"
)

// isStoreLocal reports whether a key is the store's own affair, and not the
// environment's.
func isStoreLocal(key string) bool {
	switch key {
	case keys.Format, keys.PartialCopy, keys.Moved, keys.CopyLock:
		return true
	}
	return strings.HasPrefix(key, keys.Presences) || strings.HasPrefix(key, keys.Leaders)
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

// listAroundBlobs adds what is below the prefix, itself one of keyspace.BlobsPrefix, and not
// below that. Keys are ASCII: each begins with a word of keys.go.
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

// beginCopy makes a store one that holds no environment, but the beginning of a copy, unless check
// refuses the store. One that was empty when it was read is to be so until this is committed.
func beginCopy(ctx context.Context, to *state.State, draft state.PartialCopy, empty bool, check func(tx *state.Tx, empty bool) error) error {
	draft.Since = time.Now().UTC()
	return to.Update(ctx, func(tx *state.Tx) (err error) {
		still := empty
		if empty {
			if still, err = isStillEmpty(tx); err != nil {
				return err
			}
		}
		if err := check(tx, still); err != nil {
			return err
		}
		tx.Keys().Remove(keys.Format)
		tx.Keys().Remove(keys.Moved)
		return tx.Keys().Put(keys.PartialCopy, draft)
	})
}

// isStillEmpty reports whether a store without contents still has none: there is little
// to read. The commit becomes conditional on nothing changing there.
func isStillEmpty(tx *state.Tx) (bool, error) {
	kvs, err := tx.Keys().List("")
	return !slices.ContainsFunc(kvs, func(kv keyspace.KeyValue) bool { return !isStoreLocal(kv.Key) }), err
}
