// Package sqlite is the store in one SQLite file, shared by all processes of
// one machine.
//
// It is no server and no general SQL layer: it knows four tables and the
// operations of store.Store. Only package state imports it (and it alone
// imports SQLite); of bijou it imports store and store/opener only.
//
// How it works, in the order of the files: storefile (the file, and whether it
// is still the one that was opened), conn (connections and their pragmas), schema
// (tables, Create, the format check), writer (one goroutine that commits in
// groups), writetxn (what one transaction does), snapshot (reads), changelog (what each
// commit changed), doorbell (how other processes learn of a commit), logtailer and
// watcher (one tailer for all watchers), lease, leasesweeper and owner (leases and their
// expiry).
package sqlite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bijou/state/store"
	"bijou/state/store/opener"
)

// Options are for tests and odd places; the zero value is right elsewhere.
type Options struct {
	// KeepCommits is how many of the newest commits stay in the change log at least.
	// Default 10,000: at a thousand commits a second a watcher may be away
	// for ten seconds before it needs a fresh snapshot.
	KeepCommits int64
	// PollInterval is how often the change log is read without a ring of the
	// doorbell, and the file and the leases are checked. Default 250 ms.
	PollInterval time.Duration
	// LockTimeout bounds how long a commit waits for another process that has the
	// file locked. Default 30 s.
	LockTimeout time.Duration
}

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
	*opener.Opener
	file    storeFile
	options Options
	self    func() leaseOwner // reads /proc once

	readers  *connPool
	writer   *writer
	tailer   *logTailer
	doorbell *doorbell
}

// Open opens the store at path, which Create has made; if there is none, it returns
// ErrNoStore. A file that is not a store of a format known here is refused.
//
// Leases whose processes are provably dead have ended when it returns.
func Open(ctx context.Context, path string) (store.Store, error) {
	return OpenWith(ctx, path, Options{})
}

// OpenWith is Open with options.
func OpenWith(ctx context.Context, path string, options Options) (store.Store, error) {
	d, err := open(ctx, path, options)
	if err != nil {
		return nil, fmt.Errorf("cannot open store %q: %w", path, err)
	}
	return d, nil
}

func open(ctx context.Context, path string, options Options) (*db, error) {
	file, err := findStoreFile(path)
	if err != nil {
		return nil, err
	}
	readers, err := newConnPool(file)
	if err != nil {
		return nil, err
	}
	if err := readers.withConn(ctx, checkFormat); err != nil {
		readers.close()
		return nil, err
	}
	if !file.isUnchanged() {
		readers.close()
		return nil, store.ErrStoreGone
	}
	d := &db{
		Opener: opener.New(), file: file, options: options.withDefaults(), self: sync.OnceValue(currentOwner), readers: readers,
	}
	d.doorbell = newDoorbell(file.path)
	d.tailer = newLogTailer(d)
	d.writer = newWriter(d)
	d.Go(d.writer.run)
	sweeper := newLeaseSweeper(d)
	sweeper.sweepAtOpen(ctx)
	d.Go(d.tailer.run)
	d.Go(sweeper.run)
	return d, nil
}

func (d *db) checkPresent(ctx context.Context) error {
	if err := d.CheckUsable(ctx); err != nil {
		return err
	}
	return d.checkFile()
}

// checkFile returns ErrStoreGone, from now on for ever, if the file at the path is
// not the one that was opened.
func (d *db) checkFile() error {
	if !d.file.isUnchanged() {
		return d.MarkGone()
	}
	return nil
}

func (d *db) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if err := d.checkPresent(ctx); err != nil {
		return 0, err
	}
	if err := txn.Check(); err != nil {
		return 0, err
	}
	return d.writer.runJob(ctx, func(t *writeTxn) (int64, error) { return t.commit(txn) })
}

func (d *db) Close() error {
	d.Opener.Close(func() {
		d.doorbell.close()
		d.readers.close()
		d.writer.close()
	})
	return nil
}

// Remove deletes the store at path with all the files that belong to it: whoever
// has it open gets ErrStoreGone. A store that is not there is no error.
func Remove(path string) error {
	if err := removeAll(path, path+"-wal", path+"-shm", path+"-journal", path+"-bell"); err != nil {
		return fmt.Errorf("cannot remove store %q: %w", path, err)
	}
	return nil
}
