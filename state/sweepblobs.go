package state

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"bijou/state/store"
)

// sweepBlobs removes the blobs that nothing refers to and nobody has touched since
// before. Whoever writes one or a reference to it meanwhile touches it, and so keeps it.
// If only is not nil, other blobs are left alone.
func (s *State) sweepBlobs(ctx context.Context, before time.Time, only map[string]bool) error {
	heads, err := readView(ctx, s, (*View).unreferencedBlobs)
	if err != nil {
		return err
	}
	for sum, head := range heads {
		if !head.Touched.Before(before) || only != nil && !only[sum] {
			continue
		}
		if err := s.removeBlob(ctx, sum, head); err != nil && !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return nil
}

// removeBlob takes a blob away: from its readers first, then its chunks, then its head,
// all on condition that nobody else writes the head. Interrupted, it leaves a head for
// the next sweep.
func (s *State) removeBlob(ctx context.Context, sum string, head storedBlobHead) error {
	op, err := blobHeadOp(sum, blobHead{Size: head.Size}) // not touched for ages: a writer takes it over
	if err != nil {
		return err
	}
	unchanged := func() []store.Cond { return []store.Cond{{Key: op.Key, Revision: head.revision}} }
	if head.revision, err = s.store.Commit(ctx, store.Txn{Conds: unchanged(), Ops: []store.Op{op}}); err != nil {
		return err
	}
	var chunks []store.Op
	for n := 0; int64(n)*chunkSize < head.Size; n++ {
		chunks = append(chunks, store.Op{Key: chunkKey(sum, n), Delete: true, Quiet: true})
	}
	for ops := range slices.Chunk(chunks, maxRemovedKeys) {
		if _, err := s.store.Commit(ctx, store.Txn{Conds: unchanged(), Ops: ops}); err != nil {
			return err
		}
	}
	last := []store.Op{{Key: op.Key, Delete: true, Quiet: true}}
	_, err = s.store.Commit(ctx, store.Txn{Conds: unchanged(), Ops: last})
	return err
}

func (v *View) unreferencedBlobs() (map[string]storedBlobHead, error) {
	used, err := v.referencedBlobs()
	if err != nil {
		return nil, err
	}
	kvs, err := v.list(blobHeadsPrefix)
	if err != nil {
		return nil, err
	}
	heads := map[string]storedBlobHead{}
	for _, kv := range kvs {
		sum := strings.TrimPrefix(kv.Key, blobHeadsPrefix)
		if used[sum] {
			continue
		}
		head, err := decode[blobHead](kv)
		if err != nil {
			return nil, err
		}
		heads[sum] = storedBlobHead{head, kv.Revision}
	}
	return heads, nil
}
