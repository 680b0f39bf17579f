package state

import (
	"context"
	"io"
)

// PutBlob is keyspace.Space.PutBlob: it stores what r holds under its sha256.
func (s *State) PutBlob(ctx context.Context, r io.Reader) (sum string, size int64, err error) {
	return s.space.PutBlob(ctx, r)
}

// PutFile is PutBlob for a file that may be large.
func (s *State) PutFile(ctx context.Context, r io.ReaderAt) (sum string, size int64, err error) {
	return s.space.PutFile(ctx, r)
}

// OpenBlob returns a reader of a blob by its sha256, which verifies it. ErrNotFound.
func (s *State) OpenBlob(ctx context.Context, sum string) (io.ReadCloser, error) {
	return s.space.OpenBlob(ctx, sum)
}
