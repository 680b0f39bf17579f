package copying

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"

	"bijou/state/keyspace"
	"bijou/state/progress"
	"bijou/state/store"
)

func sumStore(ctx context.Context, st store.Store) (CopySummary, error) {
	all, err := readContents(ctx, st)
	if err != nil {
		return CopySummary{}, err
	}
	p := progress.Steps{What: "keys compared", Total: len(all) + countChunks(all)}
	s := newContentSum()
	for _, kv := range all {
		s.add(kv.Key, kv.Value)
		p.Done++
	}
	progress.Report(ctx, p)
	for _, kv := range all {
		sum, chunks, _ := blobOf(kv)
		for n := range chunks {
			key := keyspace.ChunkKey(sum, n)
			chunk, ok, err := readValue(ctx, st, key)
			if err != nil {
				return CopySummary{}, err
			}
			if ok {
				s.add(key, chunk)
			}
			p.Done++
			progress.Report(ctx, p)
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
