package keyspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"bijou/state/carry"
	"bijou/state/osutil"
	"bijou/state/store"
)

const (
	// MaxBlob is the largest size of a blob, in bytes.
	MaxBlob = 64 << 20
	// ChunkSize is the number of bytes of a blob that one key holds.
	ChunkSize = 512 << 10
	// BlobGrace is how long a blob without references is kept, so that its writer can commit
	// a reference.
	BlobGrace = time.Hour
	// MinBlobGrace replaces BlobGrace for blobs that are removed sooner, such as the archives of charms.
	MinBlobGrace = time.Minute
)

// The keys of blobs: blob-heads/<sha256> is a BlobHead, and blobs/<sha256>/<n> is a chunk.
const (
	BlobsPrefix     = "blobs/"
	BlobHeadsPrefix = "blob-heads/"
)

// ChunkKey returns the key of a blob's chunk n. The first chunk is 0.
func ChunkKey(sum string, n int) string { return fmt.Sprintf("%s%s/%04d", BlobsPrefix, sum, n) }

// BlobHead describes a blob. It is written before the chunks, so that a sweep does not remove them, and again
// after them, so that a reader knows that the blob is complete.
type BlobHead struct {
	Size     int64     `json:"size"`
	Complete bool      `json:"complete,omitempty"`
	Touched  time.Time `json:"touched"` // when the blob or a reference to it was last written

	Revision int64 `json:"-"` // the revision of the head's key; 0 if the blob does not exist

	stored string // the JSON that the head was decoded from; empty if it was not read
}

// Chunks returns how many chunks the blob has.
func (h BlobHead) Chunks() int { return int((h.Size + ChunkSize - 1) / ChunkSize) }

// PutBlob stores the content of r, and returns its sha256 and size. It returns an error if the content has more
// than MaxBlob bytes. The same content may be stored again. After BlobGrace, a sweep can remove a blob to which
// no record refers. For some blobs, a sweep waits only for MinBlobGrace.
func (s *Space) PutBlob(ctx context.Context, r io.Reader) (sum string, size int64, err error) {
	data, sum, err := readBlob(r)
	if err != nil {
		return "", 0, err
	}
	_, err = s.writeBlob(ctx, sum, memoryContent(data))
	if err != nil {
		return sum, int64(len(data)), fmt.Errorf("cannot store blob: %w", err)
	}

	return sum, int64(len(data)), nil
}

// readBlob reads a blob's content into memory, and returns its sum. It returns an error if the content has more
// than MaxBlob bytes.
func readBlob(r io.Reader) (data []byte, sum string, err error) {
	data, err = io.ReadAll(io.LimitReader(r, MaxBlob+1))
	if err != nil {
		return nil, "", fmt.Errorf("cannot read blob: %w", err)
	}
	if len(data) > MaxBlob {
		return nil, "", fmt.Errorf("cannot store blob: the content has more than %d MiB", MaxBlob>>20)
	}

	return data, osutil.Digest(data), nil
}

// maxBlobRefusals is how often a blob is written again after a gateway has refused it.
const maxBlobRefusals = 3

// writeBlob makes sure that the blob is stored and was touched recently, and returns its head. After a conflict,
// it begins again with the head as it is then.
func (s *Space) writeBlob(ctx context.Context, sum string, c blobContent) (BlobHead, error) {
	for attempt := 0; ; attempt++ {
		head, err := s.writeBlobOnce(ctx, sum, c)
		// A gateway refuses to complete a blob if another writer has stored different bytes in the meantime.
		// The next attempt writes the chunks again.
		retryRefusal := errors.Is(err, store.ErrDenied) && attempt < maxBlobRefusals
		if !errors.Is(err, store.ErrConflict) && !retryRefusal {
			return head, err
		}
		if err := backOff(ctx, attempt); err != nil {
			return BlobHead{}, err
		}
	}
}

// writeBlobOnce writes a blob and returns its head. If the store has the whole blob, and the blob was touched
// recently enough that no sweep removes it, writeBlobOnce writes nothing. If the store has the whole blob, but it was
// not touched recently, writeBlobOnce only touches the head. It returns ErrConflict if the head has changed before
// writeBlobOnce could write it.
func (s *Space) writeBlobOnce(ctx context.Context, sum string, c blobContent) (BlobHead, error) {
	head, err := s.readBlobHead(ctx, sum)
	if err != nil {
		return BlobHead{}, err
	}

	exists := head.Revision != 0
	// The writer that wrote the first head may have stored a wrong size.
	hasWrongSize := exists && head.Size != c.size
	head.Complete = head.Complete && !hasWrongSize
	// A blob counts as stale long before a sweep can remove it, even if the sweep waits only for MinBlobGrace.
	isStale := time.Since(head.Touched) > MinBlobGrace/4
	if head.Complete && !isStale {
		return head, nil
	}

	// A small blob needs only one commit, and no head before its chunk.
	if !head.Complete && c.size <= ChunkSize {
		return s.putSmallBlob(ctx, sum, c, head)
	}

	// Touch the head before the chunks are written, so that a sweep does not remove them.
	if !exists || isStale || hasWrongSize {
		head, err = s.putBlobHead(ctx, sum, c.size, head)
		if err != nil {
			return head, err
		}
		if head.Complete {
			return head, nil // the store has the chunks
		}
	}

	for n := range head.Chunks() {
		chunk, err := c.chunk(n)
		if err != nil {
			return BlobHead{}, err
		}

		op := store.Op{Key: ChunkKey(sum, n), Value: chunk, Quiet: true}
		if _, err := s.store.Commit(ctx, store.Txn{Ops: []store.Op{op}}); err != nil {
			return BlobHead{}, err
		}
	}

	head.Complete = true
	return s.putBlobHead(ctx, sum, c.size, head)
}

// putSmallBlob writes the only chunk of a blob, if the blob is not empty, and the complete head in one commit. So
// no other writer can store different bytes in between. old is the head as it was read. putSmallBlob returns the
// new head. It returns ErrConflict if the head has changed since it was read.
func (s *Space) putSmallBlob(ctx context.Context, sum string, c blobContent, old BlobHead) (BlobHead, error) {
	old.Complete = true // putBlobHead copies this field to the new head
	if c.size == 0 {
		return s.putBlobHead(ctx, sum, 0, old)
	}

	chunk, err := c.chunk(0)
	if err != nil {
		return BlobHead{}, err
	}
	return s.putBlobHead(ctx, sum, c.size, old, store.Op{Key: ChunkKey(sum, 0), Value: chunk, Quiet: true})
}

// putBlobHead writes a head with the current time, and in the same commit the given chunks. old is the head as
// it was read, but its Complete is the value for the new head. putBlobHead returns the new head. It returns
// ErrConflict if the head has changed since it was read.
func (s *Space) putBlobHead(
	ctx context.Context,
	sum string,
	size int64,
	old BlobHead,
	chunks ...store.Op,
) (BlobHead, error) {
	// With stored, blobHeadOp keeps the members that a newer binary has written.
	head := BlobHead{Size: size, Complete: old.Complete, Touched: time.Now().UTC(), stored: old.stored}
	op, err := blobHeadOp(sum, head)
	if err != nil {
		return BlobHead{}, err
	}

	cond := store.Cond{Key: op.Key, Revision: old.Revision}
	head.Revision, err = s.store.Commit(ctx, store.Txn{Conds: []store.Cond{cond}, Ops: append(chunks, op)})
	return head, err
}

// blobHeadOp returns the operation that writes a blob's head. It keeps the members of the stored head that a
// newer binary has written.
func blobHeadOp(sum string, head BlobHead) (store.Op, error) {
	key := BlobHeadsPrefix + sum
	value, err := Encode(key, head)
	if err != nil {
		return store.Op{}, err
	}

	value = carry.Over([]byte(head.stored), value, head)
	return store.Op{Key: key, Value: value, Quiet: true}, nil
}

// readBlobHead reads the head of a blob in a View of its own.
func (s *Space) readBlobHead(ctx context.Context, sum string) (BlobHead, error) {
	return Read(ctx, s, func(v *View) (BlobHead, error) { return v.BlobHead(sum) })
}

// BlobHead reads the head of a blob. The head's Revision is 0 if the blob does not exist. The read adds no
// condition to the commit.
func (v *View) BlobHead(sum string) (BlobHead, error) {
	kv, err := v.GetKV(BlobHeadsPrefix + sum)
	if err != nil {
		return BlobHead{}, err
	}
	if kv.Revision == 0 {
		return BlobHead{}, nil
	}
	return DecodeBlobHead(kv)
}

// DecodeBlobHead reads the head of a blob from its key.
func DecodeBlobHead(kv store.KV) (BlobHead, error) {
	head, err := Decode[BlobHead](kv)
	head.Revision = kv.Revision
	head.stored = string(kv.Value)
	return head, err
}

// readCompleteBlobHead reads the head of a complete blob. It returns ErrNotFound if the blob does not exist or
// is stored only in part.
func (v *View) readCompleteBlobHead(sum string) (BlobHead, error) {
	head, err := v.BlobHead(sum)
	if err != nil {
		return BlobHead{}, err
	}
	if !head.Complete {
		return BlobHead{}, Refuse(ErrNotFound, "blob %q not found", sum)
	}

	return head, nil
}

// AddBlob returns the sha256 of the data. The data are stored as a blob before the commit, which refers to
// the blob.
func (tx *Tx) AddBlob(data []byte) string {
	sum := osutil.Digest(data)
	tx.buffer.blobs[sum] = data
	return sum
}

// ReferToBlob makes the commit refer to a blob that PutBlob has stored. It returns ErrNotFound if there is
// no such blob.
func (tx *Tx) ReferToBlob(sum string) error {
	// A DryRun has assumed the blob, which is not in the store.
	if tx.buffer.assumed[sum] {
		return nil
	}
	_, err := tx.readCompleteBlobHead(sum)
	if err != nil {
		return err
	}

	// nil means that the store has the data. The commit then only touches the blob.
	tx.buffer.blobs[sum] = nil
	return nil
}

// attachBlobs stores those of the blobs that have data; nil instead of data means that the blob is already
// stored. It adds writes to the transaction that touch the heads of all blobs, on condition that the heads have
// not changed. So if a sweep removes one of the blobs at the same moment, either the transaction or the removal
// fails.
func (s *Space) attachBlobs(ctx context.Context, t *store.Txn, blobs map[string][]byte) error {
	for sum, data := range blobs {
		head, err := s.ensureBlob(ctx, sum, data)
		if err != nil {
			return err
		}

		head.Touched = time.Now().UTC()
		op, err := blobHeadOp(sum, head)
		if err != nil {
			return err
		}

		t.Conds = append(t.Conds, store.Cond{Key: op.Key, Revision: head.Revision})
		t.Ops = append(t.Ops, op)
	}

	return nil
}

// ensureBlob returns the head of a blob. If data is not nil, it writes the blob first. If data is nil, the blob
// must already be stored, and ensureBlob returns ErrConflict if it is not.
func (s *Space) ensureBlob(ctx context.Context, sum string, data []byte) (BlobHead, error) {
	if data != nil {
		return s.writeBlob(ctx, sum, memoryContent(data))
	}
	head, err := s.readBlobHead(ctx, sum)
	if err != nil {
		return head, err
	}
	// A sweep has removed the blob since the update read it. The update runs again, and finds that there is
	// no blob.
	if !head.Complete {
		return head, store.ErrConflict
	}
	return head, nil
}
