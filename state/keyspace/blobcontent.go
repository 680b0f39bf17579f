package keyspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"bijou/state/digest"
	"bijou/state/progress"
)

// blobContent is read chunk by chunk, from the first; it may be begun again.
type blobContent struct {
	size  int64
	chunk func(n int) ([]byte, error)
}

func memoryContent(data []byte) blobContent {
	return blobContent{size: int64(len(data)), chunk: func(n int) ([]byte, error) {
		return data[n*ChunkSize : min(len(data), (n+1)*ChunkSize)], nil
	}}
}

var errFileChanged = errors.New("it changed while it was read")

// MaxFile is the largest file that PutFile stores, in bytes.
const MaxFile = 512 << 20

// PutFile is PutBlob for a file that may be large, up to MaxFile: it is read
// twice, and never as a whole in memory.
func (s *Space) PutFile(ctx context.Context, r io.ReaderAt) (sum string, size int64, err error) {
	sum, size, err = digest.OfReader(io.NewSectionReader(r, 0, MaxFile+1))
	if err != nil {
		return "", 0, fmt.Errorf("cannot read blob: %w", err)
	}
	if size > MaxFile {
		return "", 0, fmt.Errorf("cannot store blob: it has more than %d MiB", MaxFile>>20)
	}
	tell := func(n int) {
		progress.Report(ctx, progress.Steps{What: "MiB stored", Done: int(min(int64(n+1)*ChunkSize, size) >> 20), Total: int(size >> 20)})
	}
	if _, err := s.writeBlob(ctx, sum, fileContent(r, size, sum, tell)); err != nil {
		return "", 0, fmt.Errorf("cannot store blob: %w", err)
	}
	return sum, size, nil
}

// fileContent reads a file chunk by chunk. Its last chunk is errFileChanged if the whole
// has not the sum.
func fileContent(r io.ReaderAt, size int64, sum string, tell func(n int)) blobContent {
	var seen hash.Hash
	return blobContent{size: size, chunk: func(n int) ([]byte, error) {
		if n == 0 {
			seen = sha256.New()
		}
		from := int64(n) * ChunkSize
		chunk := make([]byte, min(ChunkSize, size-from))
		if _, err := r.ReadAt(chunk, from); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		seen.Write(chunk)
		tell(n)
		if last := from+int64(len(chunk)) == size; last && hex.EncodeToString(seen.Sum(nil)) != sum {
			return nil, errFileChanged
		}
		return chunk, nil
	}}
}
