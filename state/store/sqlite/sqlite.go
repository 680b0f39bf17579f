// Package sqlite is the store in one SQLite file, shared by all processes of
// one machine.
//
// It is no server and no general SQL layer: it knows four tables and the
// operations of store.Store. Only package state imports it (and it alone
// imports SQLite); of bijou it imports store and store/opener only.
//
// How it works, in the order of the files: place (where the file is, and if it
// is still the one we opened), conn (connections and their pragmas), schema
// (tables, Create, the format check), writer (one goroutine that commits in
// groups), apply (what one transaction does), snapshot (reads), log (the change
// log), bell (how other processes hear of a commit), hub and watcher (one tailer
// for all watchers), lease, sweep and owner (leases and their expiry).
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
	// Keep is how many of the newest commits stay in the change log at least.
	// Default 10,000: at a thousand commits a second a watcher may be away
	// for ten seconds before it needs a fresh snapshot.
	Keep int64
	// Poll is the interval of the net below the doorbell, of the look for a
	// file that is gone, and of the look for leases that have expired. Default
	// 250 ms.
	Poll time.Duration
	// Patience is how long a commit waits for another process that has the
	// file locked. Default 30 s.
	Patience time.Duration
}

func (o Options) withDefaults() Options {
	if o.Keep <= 0 {
		o.Keep = 10_000
	}
	if o.Poll <= 0 {
		o.Poll = 250 * time.Millisecond
	}
	if o.Patience <= 0 {
		o.Patience = 30 * time.Second
	}
	return o
}

// db is one opener of a store.
type db struct {
	*opener.Opener
	place   place
	options Options
	self    func() owner // this process, read once

	readers *pool
	writer  *writer
	hub     *hub
	bell    *bell
}

// Open opens the store at path, which Create has made. ErrNoStore: there is
// none, and Open makes none. A file that is not a store of a format known here
// is refused.
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
	p, err := findPlace(path)
	if err != nil {
		return nil, err
	}
	readers, err := newPool(p)
	if err != nil {
		return nil, err
	}
	if err := readers.with(ctx, checkFormat); err != nil {
		readers.close()
		return nil, err
	}
	if !p.same() {
		readers.close()
		return nil, store.ErrStoreGone
	}
	d := &db{
		Opener: opener.New(), place: p, options: options.withDefaults(), self: sync.OnceValue(thisProcess), readers: readers,
	}
	d.bell = newBell(p.path)
	d.hub = newHub(d)
	d.writer = newWriter(d)
	d.Go(d.writer.run)
	sweeper := newSweeper(d)
	sweeper.atOpen(ctx)
	d.Go(d.hub.run)
	d.Go(sweeper.run)
	return d, nil
}

// present is Usable with a look at the file.
func (d *db) present(ctx context.Context) error {
	if err := d.Usable(ctx); err != nil {
		return err
	}
	return d.look()
}

// look answers ErrStoreGone, from now on for ever, if the file at the path is
// not the one that was opened.
func (d *db) look() error {
	if !d.place.same() {
		return d.SetGone()
	}
	return nil
}

func (d *db) Commit(ctx context.Context, txn store.Txn) (int64, error) {
	if err := d.present(ctx); err != nil {
		return 0, err
	}
	if err := txn.Check(); err != nil {
		return 0, err
	}
	return d.writer.do(ctx, func(t *turn) (int64, error) { return t.commit(txn) })
}

func (d *db) Close() error {
	d.Opener.Close(func() {
		d.bell.close()
		d.readers.close()
		d.writer.close()
	})
	return nil
}
