package state

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"bijou/state/store"
)

// isStoreLocal reports whether a key is the store's own affair, and not the
// environment's.
func isStoreLocal(key string) bool {
	switch key {
	case formatKey, partialCopyKey, movedKey, copyLockKey:
		return true
	}
	return strings.HasPrefix(key, presencePrefix) || strings.HasPrefix(key, leadersPrefix)
}

// readContents reads all keys that a migration takes along, in order, except the chunks
// of blobs, which are more than memory should hold: the heads say which there are.
func readContents(ctx context.Context, st store.Store) ([]store.KV, error) {
	return readView(ctx, &State{store: st}, (*View).listContents)
}

func (v *View) listContents() (all []store.KV, err error) {
	err = listAroundBlobs(v, "", &all)
	all = slices.DeleteFunc(all, func(kv store.KV) bool { return isStoreLocal(kv.Key) })
	slices.SortFunc(all, func(a, b store.KV) int { return cmp.Compare(a.Key, b.Key) })
	return all, err
}

// listAroundBlobs adds what is below the prefix, itself one of blobsPrefix, and not
// below that. Keys are ASCII: each begins with a word of keys.go.
func listAroundBlobs(v *View, prefix string, all *[]store.KV) error {
	if prefix == blobsPrefix {
		return nil
	}
	if kv, ok, err := v.snap.Get(v.ctx, prefix); prefix != "" && (ok || err != nil) {
		if err != nil {
			return err
		}
		*all = append(*all, kv)
	}
	for c := byte(' '); c < 0x7f; c++ {
		next := prefix + string(c)
		if strings.HasPrefix(blobsPrefix, next) {
			if err := listAroundBlobs(v, next, all); err != nil {
				return err
			}
			continue
		}
		kvs, err := v.list(next)
		if err != nil {
			return err
		}
		*all = append(*all, kvs...)
	}
	return nil
}

func findKey(kvs []store.KV, key string) (store.KV, bool) {
	i, ok := slices.BinarySearchFunc(kvs, key, compareKVKey)
	if !ok {
		return store.KV{}, false
	}
	return kvs[i], true
}

// blobOf parses a blob's head; ok is false for any other key.
func blobOf(kv store.KV) (sum string, chunks int, ok bool) {
	sum, ok = strings.CutPrefix(kv.Key, blobHeadsPrefix)
	if !ok {
		return "", 0, false
	}
	head, err := decode[blobHead](kv)
	if err != nil {
		return "", 0, false
	}
	return sum, int((head.Size + chunkSize - 1) / chunkSize), true
}

func countChunks(all []store.KV) (n int) {
	for _, kv := range all {
		_, count, _ := blobOf(kv)
		n += count
	}
	return n
}

func readValue(ctx context.Context, st store.Store, key string) (value []byte, ok bool, err error) {
	err = (&State{store: st}).View(ctx, func(v *View) error {
		value, ok, err = v.get(key)
		return err
	})
	return value, ok, err
}

func readRecord[T any](ctx context.Context, s *State, key string) (doc T, ok bool, err error) {
	err = s.View(ctx, func(v *View) error {
		doc, ok, err = load[T](v, key)
		return err
	})
	return doc, ok, err
}

// isStillEmpty reports whether a store without contents still has none: there is little
// to read. The commit becomes conditional on nothing changing there.
func (tx *Tx) isStillEmpty() (bool, error) {
	kvs, err := tx.list("")
	return !slices.ContainsFunc(kvs, func(kv store.KV) bool { return !isStoreLocal(kv.Key) }), err
}
