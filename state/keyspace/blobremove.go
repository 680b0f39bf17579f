package keyspace

import (
	"context"
	"slices"

	"bijou/state/store"
)

// RemoveBlob takes a blob away: from its readers first, then its chunks, then its head,
// all on condition that nobody else writes the head. Interrupted, it leaves a head for
// the next sweep. ErrConflict: somebody has written the head since.
func (s *Space) RemoveBlob(ctx context.Context, sum string, head BlobHead) error {
	op, err := blobHeadOp(sum, BlobHead{Size: head.Size}) // not touched for ages: a writer takes it over
	if err != nil {
		return err
	}
	unchanged := func() []store.Cond { return []store.Cond{{Key: op.Key, Revision: head.Revision}} }
	if head.Revision, err = s.store.Commit(ctx, store.Txn{Conds: unchanged(), Ops: []store.Op{op}}); err != nil {
		return err
	}
	var chunks []store.Op
	for n := range head.Chunks() {
		chunks = append(chunks, store.Op{Key: ChunkKey(sum, n), Delete: true, Quiet: true})
	}
	for ops := range slices.Chunk(chunks, MaxRemovedKeys) {
		if _, err := s.store.Commit(ctx, store.Txn{Conds: unchanged(), Ops: ops}); err != nil {
			return err
		}
	}
	last := []store.Op{{Key: op.Key, Delete: true, Quiet: true}}
	_, err = s.store.Commit(ctx, store.Txn{Conds: unchanged(), Ops: last})
	return err
}
