package sqlite

import (
	"context"
	"database/sql"
	"sync"

	"bijou/state/store"
)

// snapshot is one read transaction, begun by its first read.
type snapshot struct {
	d *db

	mu     sync.Mutex
	closed bool
	conn   *conn // nil before the first read
}

func (d *db) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := d.checkPresent(ctx); err != nil {
		return nil, err
	}
	return &snapshot{d: d}, nil
}

// ensureBegun begins the transaction at the first read. The caller holds the lock.
func (s *snapshot) ensureBegun(ctx context.Context) error {
	if s.closed {
		return store.ErrClosed
	}
	if err := s.d.CheckUsable(ctx); err != nil || s.conn != nil {
		return err
	}
	c, err := s.d.readers.get(ctx)
	if err != nil {
		return err
	}
	if _, err := c.exec("BEGIN"); err != nil {
		c.close()
		return err
	}
	s.conn = c
	return nil
}

func (s *snapshot) Get(ctx context.Context, key string) (kv store.KV, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureBegun(ctx); err != nil {
		return kv, false, err
	}
	ok, err = s.conn.queryRow("SELECT value, rev FROM kv WHERE key = ?", []any{[]byte(key)}, &kv.Value, &kv.Revision)
	kv.Key = key
	return kv, ok, err
}

func (s *snapshot) Prefetch(context.Context, ...string) error { return nil }

func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureBegun(ctx); err != nil {
		return nil, err
	}
	var kvs []store.KV
	clause, args := prefixClause(prefix)
	err := s.conn.queryRows("SELECT key, value, rev FROM kv WHERE "+clause+" ORDER BY key", args, func(rows *sql.Rows) (bool, error) {
		var key sql.RawBytes
		var kv store.KV
		err := rows.Scan(&key, &kv.Value, &kv.Revision)
		kv.Key = string(key)
		kvs = append(kvs, kv)
		return true, err
	})
	return kvs, err
}

func (s *snapshot) Revision(ctx context.Context) (revision int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureBegun(ctx); err != nil {
		return 0, err
	}
	_, err = s.conn.queryRow("SELECT revision FROM head", nil, &revision)
	return revision, err
}

func (s *snapshot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.conn == nil {
		return
	}
	if _, err := s.conn.exec("ROLLBACK"); err != nil {
		s.conn.close()
	} else {
		s.d.readers.put(s.conn)
	}
	s.conn = nil
}
