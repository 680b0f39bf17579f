// Package copying takes an environment to another store, and makes backups of it and
// environments of those. What is copied is read back and compared before it counts.
//
// It copies keys, and gives them no meaning beside what a copy must not take along: who
// runs, who leads, who claims.
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

// copier makes a store like another, or like a backup.
type copier struct {
	// chunk reads one of a blob from where that is; ok is false if it is not there.
	chunk    func(ctx context.Context, sum string, n int) (value []byte, ok bool, err error)
	to       store.Store
	fault    func(point string) // nil: none
	lockLost <-chan struct{}    // closed when the lock on what is copied from, or to, is
	progress keyspace.Progress
	steps    keyspace.Steps
	sum      *contentSum

	batch []store.Op
	size  int
}

// The limits of a batch: well below those of a transaction.
const (
	maxCopyOps   = 200
	maxCopyBytes = 512 << 10
)

// copyAll makes the store hold those keys and their blobs, reads all of it back, and compares.
func (c *copier) copyAll(ctx context.Context, all []keyspace.KeyValue) (CopySummary, error) {
	c.sum = newContentSum()
	c.steps = keyspace.Steps{What: "keys copied", Total: len(all) + countChunks(all)}
	if err := c.makeAlike(ctx, all); err != nil {
		return CopySummary{}, err
	}

	back, err := c.sumTarget(ctx)
	if err != nil {
		return CopySummary{}, err
	}
	if want := c.sum.result(); back != want {
		return back, fmt.Errorf("the copy differs: it has %d keys of %d bytes, not %d of %d, with the sum %s, not %s",
			back.Keys, back.Bytes, want.Keys, want.Bytes, back.SHA256, want.SHA256)
	}

	return back, nil
}

// makeAlike makes the target's contents those in all: it removes other keys, writes those that differ, and
// copies blobs.
func (c *copier) makeAlike(ctx context.Context, all []keyspace.KeyValue) error {
	there, err := readContents(ctx, c.to)
	if err != nil {
		return err
	}

	c.progress.Report(c.steps)
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
		c.reportStep()
	}

	for _, kv := range all {
		if err := c.copyBlob(ctx, kv); err != nil {
			return err
		}
	}

	return c.flush(ctx)
}

// removeOthers removes the keys that an earlier migration has copied, and that the source no longer has.
func (c *copier) removeOthers(ctx context.Context, all, there []keyspace.KeyValue) error {
	for _, kv := range there {
		if _, wanted := findKey(all, kv.Key); wanted {
			continue
		}

		sum, chunks, _ := blobOf(kv)
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

// copyBlob copies the chunks of a blob whose head is kv. It does nothing for any other key.
func (c *copier) copyBlob(ctx context.Context, kv keyspace.KeyValue) error {
	sum, chunks, _ := blobOf(kv)

	for n := range chunks {
		key := keyspace.ChunkKey(sum, n)
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
		c.reportStep()
	}

	return nil
}

func (c *copier) reportStep() {
	c.steps.Done++
	c.progress.Report(c.steps)
}

// put adds a write to the batch. It commits the batch first if that is full.
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

// sumTarget reads all that was copied back.
func (c *copier) sumTarget(ctx context.Context) (CopySummary, error) {
	all, err := readContents(ctx, c.to)
	if err != nil {
		return CopySummary{}, err
	}

	c.steps = keyspace.Steps{What: "keys compared", Total: len(all) + countChunks(all)}
	s := newContentSum()
	for _, kv := range all {
		s.add(kv.Key, kv.Value)
		c.steps.Done++
	}
	c.progress.Report(c.steps)

	for _, kv := range all {
		sum, chunks, _ := blobOf(kv)
		for n := range chunks {
			key := keyspace.ChunkKey(sum, n)
			chunk, ok, err := readValue(ctx, c.to, key)
			if err != nil {
				return CopySummary{}, err
			}

			if ok {
				s.add(key, chunk)
			}
			c.reportStep()
		}
	}

	return s.result(), nil
}

// contentSum depends on the order of the keys.
type contentSum struct {
	hash hash.Hash
	c    CopySummary
}

func newContentSum() *contentSum { return &contentSum{hash: sha256.New()} }

func (s *contentSum) add(key string, value []byte) {
	for _, part := range [][]byte{[]byte(key), value} {
		s.hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part)))) // or "a"+"bc" were "ab"+"c"
		s.hash.Write(part)
	}
	s.c.Keys++
	s.c.Bytes += int64(len(key) + len(value))
}

func (s *contentSum) result() CopySummary {
	s.c.SHA256 = hex.EncodeToString(s.hash.Sum(nil))
	return s.c
}
