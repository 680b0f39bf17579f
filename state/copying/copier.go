// Package copying migrates an environment to another store, backs it up, and restores backups. After it has
// copied the keys, it reads them back and compares them, before the copy becomes the environment.
//
// It does not interpret the keys, except those that must not be copied, such as presences, leaders and
// claims, and those that a restoration must change.
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
	sum      *contentSum // of the keys and chunks that were read from the source

	batch []store.Op // writes that are not committed yet
	size  int        // bytes of the keys and values in batch
}

// The limits of a batch are well below those of a transaction.
const (
	maxCopyOps   = 200
	maxCopyBytes = 512 << 10
)

// copyAll makes the target's contents equal to the source's keys, which are sorted, and their blobs. Then it
// reads the target back, and returns an error if the target differs.
func (c *copier) copyAll(ctx context.Context, sourceKeys []keyspace.KeyValue) (CopySummary, error) {
	c.sum = newContentSum()
	c.steps = keyspace.Steps{What: "keys copied", Total: len(sourceKeys) + countChunks(sourceKeys)}
	// makeAlike also adds the source's keys and chunks to c.sum.
	if err := c.makeAlike(ctx, sourceKeys); err != nil {
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

// makeAlike makes the target's contents equal to the source's keys: it removes other keys, writes keys that
// differ, and copies the blobs whose heads are among the keys. It adds the source's keys and chunks to c.sum.
func (c *copier) makeAlike(ctx context.Context, sourceKeys []keyspace.KeyValue) error {
	existing, err := readContents(ctx, c.to)
	if err != nil {
		return err
	}

	c.progress.Report(c.steps)
	if err := c.removeOthers(ctx, sourceKeys, existing); err != nil {
		return err
	}

	for _, kv := range sourceKeys {
		c.sum.add(kv.Key, kv.Value)
		old, exists := findKey(existing, kv.Key)
		if !exists || string(old.Value) != string(kv.Value) {
			if err := c.put(ctx, store.Op{Key: kv.Key, Value: kv.Value}); err != nil {
				return err
			}
		}
		c.reportStep()
	}

	// The chunks follow all heads. So after an interrupted copy, the next attempt finds the chunks by their heads.
	for _, kv := range sourceKeys {
		if err := c.copyBlob(ctx, kv); err != nil {
			return err
		}
	}

	return c.flush(ctx)
}

// removeOthers removes the target's existing keys that are not wanted, and the chunks of their blobs. An
// interrupted copy can leave such keys.
func (c *copier) removeOthers(ctx context.Context, wanted, existing []keyspace.KeyValue) error {
	for _, kv := range existing {
		if _, isWanted := findKey(wanted, kv.Key); isWanted {
			continue
		}

		// The chunks go before their head. Without the head, the next attempt could not find them. Their removal is
		// Quiet, since watchers do not need it.
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

// copyBlob calls copyChunk for each chunk of the blob whose head is kv. It does nothing if kv is not a blob's
// head, or if the head does not decode.
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

// copyChunk copies chunk n of a blob, unless the target has the same chunk. It does nothing if the source
// does not have the chunk: after an interrupted upload, a blob's head exists without all of the blob's
// chunks.
func (c *copier) copyChunk(ctx context.Context, sum string, n int) error {
	value, ok, err := c.chunk(ctx, sum, n)
	if err != nil {
		return err
	}
	if !ok {
		return nil
	}

	// c.sum is the sum of the source, so it includes chunks that the target already has.
	key := keyspace.ChunkKey(sum, n)
	c.sum.add(key, value)
	old, exists, err := readValue(ctx, c.to, key)
	if err != nil {
		return err
	}
	if exists && string(old) == string(value) {
		return nil
	}

	// The write is Quiet, since watchers do not need chunks.
	return c.put(ctx, store.Op{Key: key, Value: value, Quiet: true})
}

// reportStep counts a step, and reports the progress.
func (c *copier) reportStep() {
	c.steps.Done++
	c.progress.Report(c.steps)
}

// put adds a write to the batch. If the write no longer fits, put first commits the batch.
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

// flush commits the batch, and empties it. It does nothing if the batch is empty. If the lock was lost, flush
// commits nothing and returns errCopyLockLost.
func (c *copier) flush(ctx context.Context) error {
	if len(c.batch) == 0 {
		return nil
	}

	callFault(c.fault, "migrate-batch")
	// Without the lock, another copy may be running.
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

// sumTarget reads the target's contents, and returns their number, size and sum. It adds keys and chunks to
// targetSum in the order in which makeAlike adds those of the source to c.sum.
func (c *copier) sumTarget(ctx context.Context) (CopySummary, error) {
	contents, err := readContents(ctx, c.to)
	if err != nil {
		return CopySummary{}, err
	}

	c.steps = keyspace.Steps{What: "keys compared", Total: len(contents) + countChunks(contents)}
	targetSum := newContentSum()

	// One report is enough for all keys, since their values are in memory. Chunks take longer, since each
	// must be read.
	for _, kv := range contents {
		targetSum.add(kv.Key, kv.Value)
		c.steps.Done++
	}
	c.progress.Report(c.steps)

	for _, kv := range contents {
		sum, chunks := blobChunks(kv)
		for n := range chunks {
			key := keyspace.ChunkKey(sum, n)
			chunk, ok, err := readValue(ctx, c.to, key)
			if err != nil {
				return CopySummary{}, err
			}

			// If the source has a chunk that is missing here, the sums differ.
			if ok {
				targetSum.add(key, chunk)
			}
			c.reportStep()
		}
	}

	return targetSum.result(), nil
}

// contentSum computes the summary of keys and chunks. The sum depends on their order.
type contentSum struct {
	hash    hash.Hash
	summary CopySummary // without SHA256 before result
}

func newContentSum() *contentSum { return &contentSum{hash: sha256.New()} }

// add adds one key with its value to the sum and to the summary's counts.
func (s *contentSum) add(key string, value []byte) {
	for _, part := range [][]byte{[]byte(key), value} {
		// Without the lengths, "a"+"bc" and "ab"+"c" would have the same sum.
		s.hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		s.hash.Write(part)
	}
	s.summary.Keys++
	s.summary.Bytes += int64(len(key) + len(value))
}

// result returns the summary of the keys that were added so far.
func (s *contentSum) result() CopySummary {
	s.summary.SHA256 = hex.EncodeToString(s.hash.Sum(nil))
	return s.summary
}
