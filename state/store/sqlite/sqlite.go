// Package sqlite is the store in one SQLite file, shared by all processes of one host.
//
// It is not a server and not a general SQL layer: it knows four tables and the operations of store.Store.
//
// Its files are:
//
//   - sqlite.go: opening, snapshots and closing
//   - conn.go: connections and their pragmas
//   - schema.go: the tables, Create and the check of the format
//   - writer.go: one goroutine that commits in groups
//   - writetxn.go: one write transaction
//   - changelog.go: reads of the change log
//   - logtailer.go: the tailer, which reads the change log for all watchers
//   - watcher.go: watchers
//   - doorbell.go: the file that signals a commit to other processes
//   - lease.go: leases, their owners and their expiry
//   - guard.go: checks that the files and their content were not replaced
//   - generation.go: the ids that show whether content was replaced
//   - mark.go: the file that records for other processes that the store was replaced
//   - setaside.go: moving the files of a replaced store away
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// Options are for tests and unusual hosts. In all other cases the zero value is right.
type Options struct {
	// KeepCommits is the minimum number of the newest commits that the change log keeps. The default is
	// 10,000. With the default and a thousand commits a second, a watcher can pause for ten seconds before it
	// needs a new snapshot.
	KeepCommits int64
	// PollInterval is how often the change log is read even if the doorbell does not ring, and how often the
	// files and the leases are checked. The default is 250 ms.
	PollInterval time.Duration
	// LockTimeout is how long a commit waits for another process that has the file locked. The default is
	// 30 s.
	LockTimeout time.Duration
}

// withDefaults returns the options with the defaults for fields that are not set.
func (o Options) withDefaults() Options {
	if o.KeepCommits <= 0 {
		o.KeepCommits = 10_000
	}
	if o.PollInterval <= 0 {
		o.PollInterval = 250 * time.Millisecond
	}
	if o.LockTimeout <= 0 {
		o.LockTimeout = 30 * time.Second
	}

	return o
}

// db is one process's handle of a store.
type db struct {
	*handle.Opener
	file    storeFile
	guard   *guard
	options Options
	self    func() leaseOwner // returns this process; reads /proc only once

	readers  *connPool
	writer   *writer
	tailer   *logTailer
	doorbell *doorbell
}

// Open opens the store at path. It returns ErrNoStore if there is no file, ErrStoreGone if the store was
// replaced while a process had it open, and a different error if the file is not a store of the known format.
//
// Before it returns, it tries to end the leases of processes that are provably dead.
func Open(ctx context.Context, path string) (store.Store, error) {
	return openWith(ctx, path, Options{})
}

// openWith does what Open does, with options.
func openWith(ctx context.Context, path string, options Options) (store.Store, error) {
	d, err := open(ctx, path, options)
	if err != nil {
		return nil, fmt.Errorf("cannot open store %q: %w", path, err)
	}
	return d, nil
}

// open opens the store's file, and starts the goroutines that write, follow the log, and end leases.
func open(ctx context.Context, path string, options Options) (*db, error) {
	file, err := findStoreFile(path)
	if err != nil {
		return nil, err
	}

	readers := &connPool{idle: make(chan *conn, poolSize)}
	if readers.sql, err = openSQL(file.path, readerPragmas); err != nil {
		return nil, err
	}
	guard, err := newGuard(ctx, file, readers)
	if err != nil {
		readers.close()
		return nil, err
	}

	d := &db{
		Opener:  handle.New(),
		file:    file,
		guard:   guard,
		options: options.withDefaults(),
		self:    sync.OnceValue(currentOwner),
		readers: readers,
	}
	d.doorbell = newDoorbell(file.path)
	d.tailer = newLogTailer(d)
	d.writer = &writer{d: d, jobs: make(chan *job)}
	d.Go(d.writer.run)

	sweeper := &leaseSweeper{d: d}
	sweeper.sweepAtOpen(ctx) // needs the writer, which already runs
	d.Go(d.tailer.run)
	d.Go(sweeper.run)
	return d, nil
}

// checkPresent returns an error if the store cannot be used, or if one of its files is not the file that was
// opened.
func (d *db) checkPresent(ctx context.Context) error {
	if err := d.CheckUsable(ctx); err != nil {
		return err
	}
	return d.checkFile()
}

// checkFile returns ErrStoreGone if one of the files is not the file that was opened. In that case it also
// marks the store as gone.
func (d *db) checkFile() error { return d.orGone(d.guard.checkFiles()) }

// checkContent does what checkFile does, and compares the files' contents as well.
func (d *db) checkContent(ctx context.Context) error {
	if err := d.checkFile(); err != nil {
		return err
	}
	return d.orGone(d.guard.checkContent(ctx))
}

// orGone returns err. If err is ErrStoreGone, it also marks the store as gone, so that all later calls fail.
func (d *db) orGone(err error) error {
	if errors.Is(err, store.ErrStoreGone) {
		return d.MarkGoneBecause(err)
	}
	return err
}

// explain returns the reason for an error of SQLite. It returns nil, ErrStoreGone, ErrAway and ErrClosed
// unchanged. For any other error it checks the store, since parts of a different file can cause any error. If the
// store was removed or replaced, it marks the store as gone, and returns ErrStoreGone. Otherwise it returns err.
func (d *db) explain(err error) error {
	isExplained := errors.Is(err, store.ErrStoreGone) || errors.Is(err, store.ErrAway) ||
		errors.Is(err, store.ErrClosed)
	if err == nil || isExplained {
		return err
	}
	if gone := d.checkContent(d.Context()); errors.Is(gone, store.ErrStoreGone) {
		return gone
	}

	return err
}

// Commit passes the transaction to the writer, and waits until it is durable.
func (d *db) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	// The files need no check here, since the writer checks them.
	if err := d.CheckUsable(ctx); err != nil {
		return 0, err
	}
	if err := txn.Check(); err != nil {
		return 0, err
	}

	return d.writer.runJob(ctx, func(t *writeTxn) (int64, error) { return t.apply(txn) })
}

// Close revokes the leases, ends the goroutines, and closes the connections. If the store was replaced, it can
// keep the connections open: see mustNotWriteBack.
func (d *db) Close() error {
	d.Opener.Close(func() {
		d.doorbell.close()
		if d.guard.mustNotWriteBack() {
			// The connections stay open until the process exits. Closing the last connection would write the
			// log into the main file.
			return
		}

		d.readers.close()
		d.writer.close()
		d.guard.close()
	})

	return nil
}

// Remove deletes the store at path with all its files. Processes that have the store open get ErrStoreGone.
// Remove returns no error if there is no store.
func Remove(path string) error {
	if err := removeAll(path, path+"-wal", path+"-shm", path+"-journal", path+"-bell", path+markSuffix); err != nil {
		return fmt.Errorf("cannot remove store %q: %w", path, err)
	}
	return nil
}

// snapshot is one read transaction, which begins with the snapshot's first read.
type snapshot struct {
	d *db

	mu     sync.Mutex
	closed bool
	conn   *conn // nil before the first read
}

// Snapshot returns a snapshot, which begins its transaction with its first read.
func (d *db) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := d.checkPresent(ctx); err != nil {
		return nil, err
	}
	return &snapshot{d: d}, nil
}

// ensureBegun begins the transaction, unless it has begun. It returns an error if the snapshot or the store
// cannot be used. The caller holds s.mu.
func (s *snapshot) ensureBegun(ctx context.Context) error {
	if s.closed {
		return store.ErrClosed
	}
	if err := s.d.CheckUsable(ctx); err != nil {
		return err
	}
	if s.conn != nil {
		return nil
	}

	c, err := s.d.readers.get(ctx)
	if err != nil {
		return err
	}
	if _, err := c.exec("BEGIN"); err != nil {
		s.d.readers.discard(c)
		return s.d.explain(err)
	}

	s.conn = c
	return nil
}

// Get reads one key.
func (s *snapshot) Get(ctx context.Context, key string) (kv store.KV, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if err := s.ensureBegun(ctx); err != nil {
		return kv, false, err
	}
	ok, err = s.conn.queryRow("SELECT value, rev FROM kv WHERE key = ?", []any{[]byte(key)}, &kv.Value,
		&kv.Revision)
	kv.Key = key
	return kv, ok, s.d.explain(err)
}

func (s *snapshot) Prefetch(context.Context, store.Scope) error { return nil }

// List reads the keys with the prefix.
func (s *snapshot) List(ctx context.Context, prefix string) ([]store.KV, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureBegun(ctx); err != nil {
		return nil, err
	}

	var kvs []store.KV
	clause, args := prefixClause(prefix)
	query := "SELECT key, value, rev FROM kv WHERE " + clause + " ORDER BY key"
	err := s.conn.queryRows(query, args, func(rows *sql.Rows) (bool, error) {
		var key sql.RawBytes
		var kv store.KV
		if err := rows.Scan(&key, &kv.Value, &kv.Revision); err != nil {
			return false, err
		}

		kv.Key = string(key)
		kvs = append(kvs, kv)
		return true, nil
	})

	return kvs, s.d.explain(err)
}

// Revision reads the snapshot's revision from the table head.
func (s *snapshot) Revision(ctx context.Context) (revision int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureBegun(ctx); err != nil {
		return 0, err
	}
	_, err = s.conn.queryRow("SELECT revision FROM head", nil, &revision)
	return revision, s.d.explain(err)
}

// Close ends the transaction, and returns its connection to the pool. It is idempotent.
func (s *snapshot) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.conn == nil {
		return
	}

	// The transaction has only read, so a rollback ends it.
	if _, err := s.conn.exec("ROLLBACK"); err != nil {
		s.d.readers.discard(s.conn)
	} else {
		s.d.readers.put(s.conn)
	}
	s.conn = nil
}
