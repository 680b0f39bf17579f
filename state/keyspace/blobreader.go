package keyspace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
)

// OpenBlob returns a reader of a blob by its sha256. The reader gets it chunk by chunk
// and verifies it: instead of io.EOF comes an error if the sum or the size differs.
// ErrNotFound. The reader holds no transaction open; ctx bounds all of its reads.
func (s *Space) OpenBlob(ctx context.Context, sum string) (io.ReadCloser, error) {
	head, err := s.readBlobHead(ctx, sum)
	if err != nil {
		return nil, fmt.Errorf("cannot open blob %q: %w", sum, err)
	}
	if !head.Complete {
		return nil, Refuse(ErrNotFound, "blob %q not found", sum)
	}
	next := func(n int) ([]byte, error) {
		return Read(ctx, s, func(v *View) ([]byte, error) { return v.readChunk(sum, n) })
	}
	return io.NopCloser(&blobReader{readChunk: next, sum: sum, size: head.Size, hash: sha256.New()}), nil
}

// ReadBlob reads a blob whole, one that was added in this Update, too. ErrNotFound.
func (v *View) ReadBlob(sum string) ([]byte, error) {
	if data := v.bufferedBlob(sum); data != nil {
		return data, nil
	}
	head, err := v.completeBlobHead(sum)
	if err != nil {
		return nil, err
	}
	next := func(n int) ([]byte, error) { return v.readChunk(sum, n) }
	return io.ReadAll(&blobReader{readChunk: next, sum: sum, size: head.Size, hash: sha256.New()})
}

func (v *View) bufferedBlob(sum string) []byte {
	if v.buffer == nil {
		return nil
	}
	return v.buffer.blobs[sum]
}

// readChunk makes no condition: a chunk never changes.
func (v *View) readChunk(sum string, n int) ([]byte, error) {
	kv, err := v.GetKV(ChunkKey(sum, n))
	if err == nil && kv.Revision == 0 {
		err = Refuse(ErrNotFound, "chunk %d of blob %q is missing", n, sum)
	}
	return kv.Value, err
}

// blobReader checks the sum at the end of the last chunk.
type blobReader struct {
	readChunk func(n int) ([]byte, error)
	sum       string
	size      int64

	index int
	read  int64
	hash  hash.Hash
	rest  bytes.Reader
	err   error
}

func (r *blobReader) Read(p []byte) (int, error) {
	for r.rest.Len() == 0 && r.err == nil {
		r.err = r.nextChunk()
	}
	if r.rest.Len() == 0 {
		return 0, r.err
	}
	return r.rest.Read(p)
}

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
	r.rest.Reset(chunk)
	return nil
}

func (r *blobReader) verifySum() error {
	got := hex.EncodeToString(r.hash.Sum(nil))
	if r.read != r.size || got != r.sum {
		return fmt.Errorf("blob %q is damaged: its %d bytes (of %d) have the sum %s", r.sum, r.read, r.size, got)
	}
	return io.EOF
}
