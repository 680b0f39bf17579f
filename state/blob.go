package state

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"bijou/state/store"
)

const (
	// MaxBlob is the largest blob, in bytes.
	MaxBlob = 64 << 20
	// chunkSize is how much of a blob one key holds, in bytes.
	chunkSize = 512 << 10
	// BlobGrace is how long a blob that nothing refers to is kept: time enough
	// for whoever wrote it to commit the reference.
	BlobGrace = time.Hour
	// minBlobGrace is the shortest grace that any blob is given.
	minBlobGrace = time.Minute
)

// blobHead is written before the chunks, so that a sweep leaves them alone, and once
// more after them, so that a reader knows that they are all there.
type blobHead struct {
	Size     int64     `json:"size"`
	Complete bool      `json:"complete,omitempty"`
	Touched  time.Time `json:"touched"` // by the last who wrote it or a reference to it
}

type storedBlobHead struct {
	blobHead
	revision int64 // 0: there is none
}

func hexSHA256(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// PutBlob stores what r holds, up to MaxBlob, under its sha256. Storing again what
// is there already is no error. A blob that nothing refers to BlobGrace later may
// be swept.
func (s *State) PutBlob(ctx context.Context, r io.Reader) (sum string, size int64, err error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxBlob+1))
	if err != nil {
		return "", 0, fmt.Errorf("cannot read blob: %w", err)
	}
	if len(data) > MaxBlob {
		return "", 0, fmt.Errorf("cannot store blob: it has more than %d MiB", MaxBlob>>20)
	}
	sum = hexSHA256(data)
	if _, err := s.writeBlob(ctx, sum, memoryContent(data)); err != nil {
		return "", 0, fmt.Errorf("cannot store blob: %w", err)
	}
	return sum, int64(len(data)), nil
}

// writeBlob returns the head of the blob, which it writes unless it is there and was
// touched lately. Two writers of one blob write the same chunks, and the first to
// complete it wins.
func (s *State) writeBlob(ctx context.Context, sum string, c blobContent) (storedBlobHead, error) {
	for attempt := 0; ; attempt++ {
		head, err := s.writeBlobOnce(ctx, sum, c)
		if !errors.Is(err, store.ErrConflict) {
			return head, err
		}
		if err := backOff(ctx, attempt); err != nil {
			return storedBlobHead{}, err
		}
	}
}

func (s *State) writeBlobOnce(ctx context.Context, sum string, c blobContent) (storedBlobHead, error) {
	head, err := s.readBlobHead(ctx, sum)
	if err != nil {
		return storedBlobHead{}, err
	}
	stale := time.Since(head.Touched) > minBlobGrace/4
	if head.Complete && !stale {
		return head, nil
	}
	if head.revision == 0 || stale {
		if head, err = s.putBlobHead(ctx, sum, c.size, head); err != nil || head.Complete {
			return head, err
		}
	}
	for n := 0; int64(n)*chunkSize < c.size; n++ {
		chunk, err := c.chunk(n)
		if err != nil {
			return storedBlobHead{}, err
		}
		op := store.Op{Key: chunkKey(sum, n), Value: chunk, Quiet: true}
		if _, err := s.store.Commit(ctx, store.Txn{Ops: []store.Op{op}}); err != nil {
			return storedBlobHead{}, err
		}
	}
	head.Complete = true
	return s.putBlobHead(ctx, sum, c.size, head)
}

// putBlobHead writes a head, touched now, unless it has changed since it was read:
// ErrConflict.
func (s *State) putBlobHead(ctx context.Context, sum string, size int64, old storedBlobHead) (storedBlobHead, error) {
	head := storedBlobHead{blobHead: blobHead{Size: size, Complete: old.Complete, Touched: time.Now().UTC()}}
	op, err := blobHeadOp(sum, head.blobHead)
	if err != nil {
		return storedBlobHead{}, err
	}
	cond := store.Cond{Key: op.Key, Revision: old.revision}
	head.revision, err = s.store.Commit(ctx, store.Txn{Conds: []store.Cond{cond}, Ops: []store.Op{op}})
	return head, err
}

func blobHeadOp(sum string, head blobHead) (store.Op, error) {
	key := blobHeadKey(sum)
	value, err := encode(key, head)
	return store.Op{Key: key, Value: value, Quiet: true}, err
}

func (s *State) readBlobHead(ctx context.Context, sum string) (storedBlobHead, error) {
	return readView(ctx, s, func(v *View) (storedBlobHead, error) { return v.loadBlobHead(sum) })
}

// loadBlobHead does not make the head a condition.
func (v *View) loadBlobHead(sum string) (storedBlobHead, error) {
	v.checkOpen()
	kv, ok, err := v.snap.Get(v.ctx, blobHeadKey(sum))
	if err != nil || !ok {
		return storedBlobHead{}, err
	}
	head, err := decode[blobHead](kv)
	return storedBlobHead{head, kv.Revision}, err
}

func (v *View) completeBlobHead(sum string) (storedBlobHead, error) {
	head, err := v.loadBlobHead(sum)
	if err == nil && !head.Complete {
		err = refuse(ErrNotFound, "blob %q not found", sum)
	}
	return head, err
}

// addBlob has the commit write the blob first.
func (tx *Tx) addBlob(data []byte) string {
	sum := hexSHA256(data)
	tx.buffer.blobs[sum] = data
	return sum
}

// referToBlob makes the commit refer to a blob that PutBlob has stored. ErrNotFound.
func (tx *Tx) referToBlob(sum string) error {
	_, err := tx.completeBlobHead(sum)
	if err == nil {
		tx.buffer.blobs[sum] = nil
	}
	return err
}

// attachBlobs writes the blobs that a transaction refers to, and makes it touch their
// heads on condition that they have not changed: a sweep at the same moment then fails.
func (s *State) attachBlobs(ctx context.Context, t *store.Txn, blobs map[string][]byte) error {
	for sum, data := range blobs {
		head, err := s.ensureBlob(ctx, sum, data)
		if err != nil {
			return err
		}
		head.Touched = time.Now().UTC()
		op, err := blobHeadOp(sum, head.blobHead)
		if err != nil {
			return err
		}
		t.Conds = append(t.Conds, store.Cond{Key: op.Key, Revision: head.revision})
		t.Ops = append(t.Ops, op)
	}
	return nil
}

// ensureBlob returns the head of a blob, written first if the data is there.
func (s *State) ensureBlob(ctx context.Context, sum string, data []byte) (storedBlobHead, error) {
	if data != nil {
		return s.writeBlob(ctx, sum, memoryContent(data))
	}
	head, err := s.readBlobHead(ctx, sum)
	if err == nil && !head.Complete {
		err = store.ErrConflict // swept since it was read: the rerun says so
	}
	return head, err
}
