// Package copying migrates an environment to another store, backs it up, and restores backups. Copied keys
// are read back and compared before the copy counts.
//
// It does not interpret the keys, except those that must not be copied: presences, leaders and claims.
package copying

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"

	"bijou/state/keyspace"
	"bijou/state/store"
)

// copier makes the contents of a store equal to those of another store, or of a backup.
type copier struct {
	// chunk reads a chunk of a blob from the source. It returns ok false if the source does not have the chunk.
	chunk    func(ctx context.Context, sum string, n int) (value []byte, ok bool, err error)
	to       store.Store
	fault    func(point string) // nil outside tests
	lockLost <-chan struct{}    // closed when the lock on the source, or on the target, is lost
	progress keyspace.Progress
	steps    keyspace.Steps
	sum      *contentSum

	batch []store.Op
	size  int
}

// The limits of a batch are well below those of a transaction.
const (
	maxCopyOps   = 200
	maxCopyBytes = 512 << 10
)

// copyAll makes the target's contents equal to the keys and their blobs. Then it reads the target back and
// compares.
func (c *copier) copyAll(ctx context.Context, all []keyspace.KeyValue) (CopySummary, error) {
	c.sum = newContentSum()
	c.steps = keyspace.Steps{What: "keys copied", Total: len(all) + countChunks(all)}
	if err := c.makeAlike(ctx, all); err != nil {
		return CopySummary{}, err
	}

	got, err := c.sumTarget(ctx)
	if err != nil {
		return CopySummary{}, err
	}
	if want := c.sum.result(); got != want {
		return CopySummary{}, fmt.Errorf(
			"the copy differs: it has %d keys with %d bytes, not %d with %d, and the sum %s, not %s",
			got.Keys, got.Bytes, want.Keys, want.Bytes, got.SHA256, want.SHA256)
	}

	return got, nil
}

// makeAlike makes the target's contents equal to the listed keys: it removes other keys, writes keys that
// differ, and copies their blobs.
func (c *copier) makeAlike(ctx context.Context, all []keyspace.KeyValue) error {
	existing, err := readContents(ctx, c.to)
	if err != nil {
		return err
	}

	c.progress.Report(c.steps)
	if err := c.removeOthers(ctx, all, existing); err != nil {
		return err
	}

	for _, kv := range all {
		c.sum.add(kv.Key, kv.Value)
		if old, ok := findKey(existing, kv.Key); !ok || string(old.Value) != string(kv.Value) {
			if err := c.put(ctx, store.Op{Key: kv.Key, Value: kv.Value}); err != nil {
				return err
			}
		}
		c.reportStep()
	}

	for _, kv := range all {
		if err := c.copyBlob(ctx, kv); err != nil {
			return err
		}
	}

	return c.flush(ctx)
}

// removeOthers removes those of the target's existing keys that are not wanted. There can be such keys after an
// interrupted copy.
func (c *copier) removeOthers(ctx context.Context, wanted, existing []keyspace.KeyValue) error {
	for _, kv := range existing {
		if _, isWanted := findKey(wanted, kv.Key); isWanted {
			continue
		}

		// The chunks go before their head. Without the head, the next attempt could not find them.
		sum, chunks := blobChunks(kv)
		for n := range chunks {
			if err := c.put(ctx, store.Op{Key: keyspace.ChunkKey(sum, n), Delete: true, Quiet: true}); err != nil {
				return err
			}
		}

		if err := c.put(ctx, store.Op{Key: kv.Key, Delete: true}); err != nil {
			return err
		}
	}

	return nil
}

// copyBlob copies the chunks of a blob whose head is kv, except chunks that are the same in the target. It does
// nothing if kv is not a blob's head.
func (c *copier) copyBlob(ctx context.Context, kv keyspace.KeyValue) error {
	sum, chunks := blobChunks(kv)
	for n := range chunks {
		if err := c.copyChunk(ctx, sum, n); err != nil {
			return err
		}
		c.reportStep()
	}

	return nil
}

// copyChunk copies a chunk of a blob, unless the target has the same. It does nothing if the source does not
// have the chunk: an interrupted upload leaves a blob's head without all of its chunks.
func (c *copier) copyChunk(ctx context.Context, sum string, n int) error {
	chunk, ok, err := c.chunk(ctx, sum, n)
	if err != nil || !ok {
		return err
	}

	key := keyspace.ChunkKey(sum, n)
	c.sum.add(key, chunk)
	old, there, err := readValue(ctx, c.to, key)
	if err != nil {
		return err
	}
	if there && string(old) == string(chunk) {
		return nil
	}

	return c.put(ctx, store.Op{Key: key, Value: chunk, Quiet: true})
}

func (c *copier) reportStep() {
	c.steps.Done++
	c.progress.Report(c.steps)
}

// put adds a write to the batch. If the batch is full, it commits the batch first.
func (c *copier) put(ctx context.Context, op store.Op) error {
	size := len(op.Key) + len(op.Value)
	if len(c.batch) == maxCopyOps || c.size+size > maxCopyBytes {
		if err := c.flush(ctx); err != nil {
			return err
		}
	}

	c.batch = append(c.batch, op)
	c.size += size
	return nil
}

// flush commits the batch. It returns errCopyLockLost if the lock was lost.
func (c *copier) flush(ctx context.Context) error {
	if len(c.batch) == 0 {
		return nil
	}

	callFault(c.fault, "migrate-batch")
	select {
	case <-c.lockLost:
		return errCopyLockLost
	default:
	}

	_, err := c.to.Commit(ctx, store.Txn{Ops: c.batch})
	c.batch = nil
	c.size = 0
	return err
}

// sumTarget reads the target's contents, and returns their number, size and sum. It adds them in the order of
// makeAlike.
func (c *copier) sumTarget(ctx context.Context) (CopySummary, error) {
	all, err := readContents(ctx, c.to)
	if err != nil {
		return CopySummary{}, err
	}

	c.steps = keyspace.Steps{What: "keys compared", Total: len(all) + countChunks(all)}
	s := newContentSum()

	// One report is enough for all keys, since their values are in memory. Each chunk must be read.
	for _, kv := range all {
		s.add(kv.Key, kv.Value)
		c.steps.Done++
	}
	c.progress.Report(c.steps)

	for _, kv := range all {
		sum, chunks := blobChunks(kv)
		for n := range chunks {
			key := keyspace.ChunkKey(sum, n)
			chunk, ok, err := readValue(ctx, c.to, key)
			if err != nil {
				return CopySummary{}, err
			}

			// If the source has a chunk that is missing here, the sums differ.
			if ok {
				s.add(key, chunk)
			}
			c.reportStep()
		}
	}

	return s.result(), nil
}

// contentSum computes the summary of keys and chunks. The sum depends on their order.
type contentSum struct {
	hash hash.Hash
	c    CopySummary
}

func newContentSum() *contentSum { return &contentSum{hash: sha256.New()} }

func (s *contentSum) add(key string, value []byte) {
	for _, part := range [][]byte{[]byte(key), value} {
		// Without the lengths, "a"+"bc" and "ab"+"c" would have the same sum.
		s.hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		s.hash.Write(part)
	}
	s.c.Keys++
	s.c.Bytes += int64(len(key) + len(value))
}

func (s *contentSum) result() CopySummary {
	s.c.SHA256 = hex.EncodeToString(s.hash.Sum(nil))
	return s.c
}
