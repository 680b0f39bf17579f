package memstore

import (
	"context"
	"slices"
	"strings"
	"sync"

	"bijou/state/store"
)

// snapshot reads the versions that were current at its revision.
type snapshot struct {
	o *handle

	mu       sync.Mutex
	closed   bool
	fixed    bool
	revision int64
}

// fixRevision sets the revision at the first read. The caller holds the data's lock.
func (s *snapshot) fixRevision(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if err := s.o.checkUsable(ctx); err != nil {
		return err
	}
	if !s.fixed {
		s.fixed, s.revision = true, s.o.d.revision
	}
	return nil
}

func (s *snapshot) Get(ctx context.Context, key string) (store.KV, bool, error) {
	s.o.d.mu.Lock()
	defer s.o.d.mu.Unlock()
	if err := s.fixRevision(ctx); err != nil {
		return store.KV{}, false, err
	}
	kv, ok := s.readKey(key)
	return kv, ok, nil
}

func (s *snapshot) Prefetch(context.Context, store.Scope) error { return nil }

func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	s.o.d.mu.Lock()
	defer s.o.d.mu.Unlock()
	if err := s.fixRevision(ctx); err != nil {
		return nil, err
	}
	var kvs []store.KV
	first, _ := slices.BinarySearch(s.o.d.keys, prefix)
	for _, key := range s.o.d.keys[first:] {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		if kv, ok := s.readKey(key); ok {
			kvs = append(kvs, kv)
		}
	}
	return kvs, nil
}

func (s *snapshot) readKey(key string) (store.KV, bool) {
	v, ok := s.o.d.versionAt(key, s.revision)
	return store.KV{Key: key, Value: slices.Clone(v.value), Revision: v.revision}, ok
}

func (s *snapshot) Revision(ctx context.Context) (int64, error) {
	s.o.d.mu.Lock()
	defer s.o.d.mu.Unlock()
	if err := s.fixRevision(ctx); err != nil {
		return 0, err
	}
	return s.revision, nil
}

func (s *snapshot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}
