package sweep

import (
	"context"
	"errors"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/keyspace"
)

// sweepBlobs removes the blobs that nothing refers to and nobody has touched since
// before. Whoever writes one or a reference to it meanwhile touches it, and so keeps it.
// If only is not nil, other blobs are left alone.
func sweepBlobs(ctx context.Context, s *state.State, before time.Time, only map[string]bool) error {
	heads, err := state.Read(ctx, s, unreferencedBlobs)
	if err != nil {
		return err
	}
	for sum, head := range heads {
		if !head.Touched.Before(before) || only != nil && !only[sum] {
			continue
		}
		if err := s.Space().RemoveBlob(ctx, sum, head); err != nil && !errors.Is(err, keyspace.ErrConflict) {
			return err
		}
	}
	return nil
}

func unreferencedBlobs(v *state.View) (map[string]keyspace.BlobHead, error) {
	used, err := v.ReferencedBlobs()
	if err != nil {
		return nil, err
	}
	kvs, err := v.Keys().List(keyspace.BlobHeadsPrefix)
	if err != nil {
		return nil, err
	}
	heads := map[string]keyspace.BlobHead{}
	for _, kv := range kvs {
		sum := strings.TrimPrefix(kv.Key, keyspace.BlobHeadsPrefix)
		if used[sum] {
			continue
		}
		if heads[sum], err = keyspace.DecodeBlobHead(kv); err != nil {
			return nil, err
		}
	}
	return heads, nil
}
