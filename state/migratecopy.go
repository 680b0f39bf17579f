package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"bijou/state/store"
)

// copyTo brings the new store to what the old one holds, reads all of it back, and
// marks the old one as moved. ErrConflict: that has changed meanwhile.
func (s *migrationSource) copyTo(ctx context.Context, m Migration, to store.Store) (Copied, error) {
	revision, err := s.lockedRevision(ctx)
	if err != nil {
		return Copied{}, err
	}
	all, err := readContents(ctx, s.state.store)
	if err != nil {
		return Copied{}, err
	}
	chunk := func(ctx context.Context, sum string, n int) ([]byte, bool, error) {
		return readValue(ctx, s.state.store, chunkKey(sum, n))
	}
	c := &copier{chunk: chunk, to: to, fault: m.callFault, lockLost: s.lease.Done()}
	back, err := c.copyAll(ctx, all)
	if err != nil {
		return back, err
	}
	return back, s.markMoved(ctx, m.To, revision)
}

// isStoreLocal says if a key is the store's own affair, and not the environment's.
func isStoreLocal(key string) bool {
	switch key {
	case formatKey, partialCopyKey, movedKey, copyLockKey:
		return true
	}
	return strings.HasPrefix(key, presencePrefix) || strings.HasPrefix(key, leadersPrefix)
}

// readContents reads all keys that a migration takes along, in order, except the chunks
// of blobs, which are more than memory should hold: the heads say which there are.
func readContents(ctx context.Context, st store.Store) (all []store.KV, err error) {
	err = (&State{store: st}).View(ctx, func(v *View) error {
		all, err = v.listContents()
		return err
	})
	return all, err
}

func (v *View) listContents() (all []store.KV, err error) {
	err = listAroundBlobs(v, "", &all)
	all = slices.DeleteFunc(all, func(kv store.KV) bool { return isStoreLocal(kv.Key) })
	slices.SortFunc(all, func(a, b store.KV) int { return cmp.Compare(a.Key, b.Key) })
	return all, err
}

// listAroundBlobs adds what lies below the prefix, which is one of blobsPrefix itself, and
// is not below that. Keys are ASCII: each begins with a word of keys.go.
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

// isEmpty says if a store holds nothing at all.
func isEmpty(ctx context.Context, st store.Store) (bool, error) {
	all, err := readContents(ctx, st)
	if err != nil || len(all) > 0 {
		return false, err
	}
	return true, nil
}

// blobOf takes a blob's head for what it says: its sum, and how many chunks it has.
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

// countChunks counts those of all blobs.
func countChunks(all []store.KV) (n int) {
	for _, kv := range all {
		_, count, _ := blobOf(kv)
		n += count
	}
	return n
}

// copier makes a store like another, or like a backup.
type copier struct {
	// chunk reads one of a blob from where that is; ok is false if it is not there.
	chunk    func(ctx context.Context, sum string, n int) (value []byte, ok bool, err error)
	to       store.Store
	fault    func(point string)
	lockLost <-chan struct{} // closed when the hold on what is copied from, or to, is
	progress Progress
	sum      *contentSum

	batch []store.Op
	size  int
}

// Of a batch: well below what a transaction takes.
const (
	maxCopyOps   = 200
	maxCopyBytes = 512 << 10
)

// copyAll brings the store to hold those keys and their blobs, reads all of it back, and
// compares.
func (c *copier) copyAll(ctx context.Context, all []store.KV) (Copied, error) {
	c.sum = newContentSum()
	c.progress = Progress{What: "keys copied", Total: len(all) + countChunks(all)}
	if err := c.writeDifferences(ctx, all); err != nil {
		return Copied{}, err
	}
	back, err := sumStore(ctx, c.to)
	if err != nil {
		return Copied{}, err
	}
	if want := c.sum.result(); back != want {
		return back, fmt.Errorf("the copy differs: it has %d keys of %d bytes, not %d of %d, with the sum %s, not %s",
			back.Keys, back.Bytes, want.Keys, want.Bytes, back.SHA256, want.SHA256)
	}
	return back, nil
}

// writeDifferences writes what differs, and removes what is too much.
func (c *copier) writeDifferences(ctx context.Context, all []store.KV) error {
	there, err := readContents(ctx, c.to)
	if err != nil {
		return err
	}
	Tell(ctx, c.progress)
	if err := c.removeOthers(ctx, all, there); err != nil {
		return err
	}
	for _, kv := range all {
		c.sum.add(kv.Key, kv.Value)
		if old, ok := findKey(there, kv.Key); !ok || string(old.Value) != string(kv.Value) {
			if err := c.put(ctx, store.Op{Key: kv.Key, Value: kv.Value}); err != nil {
				return err
			}
		}
		c.reportStep(ctx)
	}
	for _, kv := range all {
		if err := c.copyBlob(ctx, kv); err != nil {
			return err
		}
	}
	return c.flush(ctx)
}

// findKey finds a key.
func findKey(kvs []store.KV, key string) (store.KV, bool) {
	i, ok := slices.BinarySearchFunc(kvs, key, compareKVKey)
	if !ok {
		return store.KV{}, false
	}
	return kvs[i], true
}

// removeOthers removes what an earlier migration has left, and is gone since.
func (c *copier) removeOthers(ctx context.Context, all, there []store.KV) error {
	for _, kv := range there {
		if _, wanted := findKey(all, kv.Key); wanted {
			continue
		}
		sum, chunks, _ := blobOf(kv)
		for n := range chunks {
			if err := c.put(ctx, store.Op{Key: chunkKey(sum, n), Delete: true, Quiet: true}); err != nil {
				return err
			}
		}
		if err := c.put(ctx, store.Op{Key: kv.Key, Delete: true}); err != nil {
			return err
		}
	}
	return nil
}

// copyBlob copies the chunks of a blob, if the key is a blob's head.
func (c *copier) copyBlob(ctx context.Context, kv store.KV) error {
	sum, chunks, _ := blobOf(kv)
	for n := range chunks {
		key := chunkKey(sum, n)
		chunk, ok, err := c.chunk(ctx, sum, n)
		if err != nil {
			return err
		}
		old, there, err := readValue(ctx, c.to, key)
		if err != nil {
			return err
		}
		if ok {
			c.sum.add(key, chunk)
		}
		if ok && (!there || string(old) != string(chunk)) {
			err = c.put(ctx, store.Op{Key: key, Value: chunk, Quiet: true})
		}
		if err != nil {
			return err
		}
		c.reportStep(ctx)
	}
	return nil
}

// readValue reads one key.
func readValue(ctx context.Context, st store.Store, key string) (value []byte, ok bool, err error) {
	err = (&State{store: st}).View(ctx, func(v *View) error {
		value, ok, err = v.get(key)
		return err
	})
	return value, ok, err
}

func (c *copier) reportStep(ctx context.Context) {
	c.progress.Done++
	Tell(ctx, c.progress)
}

// put writes one key with its batch.
func (c *copier) put(ctx context.Context, op store.Op) error {
	size := len(op.Key) + len(op.Value)
	if len(c.batch) == maxCopyOps || c.size+size > maxCopyBytes {
		if err := c.flush(ctx); err != nil {
			return err
		}
	}
	c.batch, c.size = append(c.batch, op), c.size+size
	return nil
}

// flush commits the batch.
func (c *copier) flush(ctx context.Context) error {
	if len(c.batch) == 0 {
		return nil
	}
	c.fault("migrate-batch")
	select {
	case <-c.lockLost:
		return errCopyLockLost
	default:
	}
	_, err := c.to.Commit(ctx, store.Txn{Ops: c.batch})
	c.batch, c.size = nil, 0
	return err
}
