package keyspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"bijou/state/osutil"
	"bijou/state/store"
)

// OpenBlob returns a reader of the blob with this sha256. The reader fetches the blob chunk by chunk. At the
// end, it returns ErrDamaged instead of io.EOF if the sum or the size is wrong. The reader holds no
// transaction open, and ctx limits all of its reads. OpenBlob returns ErrNotFound if there is no such blob.
func (s *Space) OpenBlob(ctx context.Context, sum string) (io.ReadCloser, error) {
	head, err := s.readBlobHead(ctx, sum)
	if err != nil {
		return nil, fmt.Errorf("cannot open blob %q: %w", sum, err)
	}
	if !head.Complete {
		return nil, Refuse(ErrNotFound, "blob %q not found", sum)
	}

	readChunk := func(n int) ([]byte, error) {
		return Read(ctx, s, func(v *View) ([]byte, error) { return v.readChunk(sum, n) })
	}
	return io.NopCloser(&blobReader{readChunk: readChunk, sum: sum, size: head.Size, hash: sha256.New()}), nil
}

// ReadBlob returns the content of a blob. The blob may have been added in this Update. ReadBlob returns
// ErrNotFound if there is no such blob or a chunk of it is missing, and ErrDamaged if the sum or the size is
// wrong.
func (v *View) ReadBlob(sum string) ([]byte, error) {
	if v.buffer != nil && v.buffer.blobs[sum] != nil {
		return v.buffer.blobs[sum], nil
	}
	head, err := v.readCompleteBlobHead(sum)
	if err != nil {
		return nil, err
	}

	readChunk := func(n int) ([]byte, error) { return v.readChunk(sum, n) }
	return io.ReadAll(&blobReader{readChunk: readChunk, sum: sum, size: head.Size, hash: sha256.New()})
}

// readChunk reads a chunk. It returns ErrNotFound if the chunk is missing. It adds no condition to the commit,
// since the blobReader verifies the sum of all chunks.
func (v *View) readChunk(sum string, n int) ([]byte, error) {
	kv, err := v.GetKV(ChunkKey(sum, n))
	if err != nil {
		return kv.Value, err
	}
	if kv.Revision == 0 {
		return kv.Value, Refuse(ErrNotFound, "chunk %d of blob %q is missing", n, sum)
	}

	return kv.Value, nil
}

// blobReader reads a blob chunk by chunk. After the last chunk it verifies the size and the sum.
type blobReader struct {
	readChunk func(n int) ([]byte, error)
	sum       string
	size      int64

	index  int          // of the next chunk
	read   int64        // how many bytes of chunks were read
	hash   hash.Hash    // of these bytes
	unread bytes.Reader // the part of the last chunk that Read has not returned yet
	err    error        // the result of all further reads, once unread is empty
}

// Read returns bytes of the current chunk. It fetches the next chunk if there are none left.
func (r *blobReader) Read(p []byte) (int, error) {
	for r.unread.Len() == 0 && r.err == nil {
		r.err = r.nextChunk()
	}
	if r.unread.Len() == 0 {
		return 0, r.err
	}

	return r.unread.Read(p)
}

// nextChunk reads the next chunk. After the last chunk it returns the result of verifySum, which is io.EOF for
// an intact blob.
func (r *blobReader) nextChunk() error {
	if r.read >= r.size {
		return r.verifySum()
	}
	chunk, err := r.readChunk(r.index)
	if err != nil {
		return fmt.Errorf("cannot read blob: %w", err)
	}

	r.index++
	r.read += int64(len(chunk))
	r.hash.Write(chunk)
	r.unread.Reset(chunk)
	return nil
}

// verifySum returns io.EOF if the blob was read completely and has the right sum. Otherwise it returns
// ErrDamaged.
func (r *blobReader) verifySum() error {
	got := hex.EncodeToString(r.hash.Sum(nil))
	if r.read != r.size || got != r.sum {
		return Refuse(ErrDamaged, "blob %q is damaged: it has %d bytes (of %d) and the sum %s", r.sum, r.read, r.size, got)
	}
	return io.EOF
}

// RemoveBlob removes a blob. head is the blob's head as it was read. RemoveBlob first marks the head as
// incomplete, so that readers no longer find the blob. Then it removes the chunks, and finally the head. If
// it is interrupted, the next sweep finds the head and continues. RemoveBlob returns ErrConflict if the head
// was changed since it was read.
func (s *Space) RemoveBlob(ctx context.Context, sum string, head BlobHead) error {
	// Touched is zero, so that a writer of the same blob writes the head and thereby stops the removal.
	op, err := blobHeadOp(sum, BlobHead{Size: head.Size})
	if err != nil {
		return err
	}

	// The first commit changes the head's revision, so each commit builds its own condition.
	headUnchanged := func() []store.Cond { return []store.Cond{{Key: op.Key, Revision: head.Revision}} }
	head.Revision, err = s.store.Commit(ctx, store.Txn{Conds: headUnchanged(), Ops: []store.Op{op}})
	if err != nil {
		return err
	}

	// A writer of the same sum may have stored more chunks than the size in the head implies.
	var chunks []store.Op
	for n := range max(head.Chunks(), MaxBlob/ChunkSize) {
		chunks = append(chunks, store.Op{Key: ChunkKey(sum, n), Delete: true, Quiet: true})
	}

	for ops := range slices.Chunk(chunks, MaxRemovedKeys) {
		if _, err := s.store.Commit(ctx, store.Txn{Conds: headUnchanged(), Ops: ops}); err != nil {
			return err
		}
	}

	removeHead := []store.Op{{Key: op.Key, Delete: true, Quiet: true}}
	_, err = s.store.Commit(ctx, store.Txn{Conds: headUnchanged(), Ops: removeHead})
	return err
}

// blobContent is the content of a blob to be written.
type blobContent struct {
	size int64
	// chunk returns chunk n. It is called for the chunks in order. A retry begins with chunk 0 again.
	chunk func(n int) ([]byte, error)
}

// memoryContent returns the data as the content of a blob.
func memoryContent(data []byte) blobContent {
	return blobContent{size: int64(len(data)), chunk: func(n int) ([]byte, error) {
		return data[n*ChunkSize : min(len(data), (n+1)*ChunkSize)], nil
	}}
}

var errFileChanged = errors.New("the content changed while it was read")

// MaxFile is the largest file that PutFile stores, in bytes.
const MaxFile = 512 << 20

// PutFile does what PutBlob does, for a file of at most MaxFile bytes. It reads the file piece by
// piece: once for the sum, and again if the blob must be written. It returns an error if the content has
// changed in between.
func (s *Space) PutFile(ctx context.Context, r io.ReaderAt) (sum string, size int64, err error) {
	if sum, size, err = sumFile(r); err != nil {
		return "", 0, err
	}

	reportChunk := func(n int) {
		s.Progress.Report(Steps{
			What:  "MiB stored",
			Done:  int(min(int64(n+1)*ChunkSize, size) >> 20),
			Total: int(size >> 20),
		})
	}

	_, err = s.writeBlob(ctx, sum, fileContent(r, size, sum, reportChunk))
	if err != nil {
		return sum, size, fmt.Errorf("cannot store blob: %w", err)
	}

	return sum, size, nil
}

// sumFile returns the sum and size of a file. It returns an error if the file is larger than MaxFile.
func sumFile(r io.ReaderAt) (sum string, size int64, err error) {
	sum, size, err = osutil.DigestReader(io.NewSectionReader(r, 0, MaxFile+1))
	if err != nil {
		return "", 0, fmt.Errorf("cannot read blob: %w", err)
	}
	if size > MaxFile {
		return "", 0, fmt.Errorf("cannot store blob: the content has more than %d MiB", MaxFile>>20)
	}

	return sum, size, nil
}

// fileContent returns a file as the content of a blob, whose size and sum were computed before. The chunks must be
// read in order, and can be read again from the first. After each chunk that was read, reportChunk is called. The
// read of the last chunk returns errFileChanged if the file no longer has this sum.
func fileContent(r io.ReaderAt, size int64, sum string, reportChunk func(n int)) blobContent {
	var chunksHash hash.Hash // of the chunks so far

	return blobContent{size: size, chunk: func(n int) ([]byte, error) {
		if n == 0 {
			chunksHash = sha256.New()
		}
		from := int64(n) * ChunkSize
		chunk := make([]byte, min(ChunkSize, size-from))
		// The sum, and not io.EOF, shows whether the file has become shorter.
		if _, err := r.ReadAt(chunk, from); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}

		chunksHash.Write(chunk)
		reportChunk(n)
		isLast := from+int64(len(chunk)) == size
		if isLast && hex.EncodeToString(chunksHash.Sum(nil)) != sum {
			return nil, errFileChanged
		}

		return chunk, nil
	}}
}
