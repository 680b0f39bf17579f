// Package etcd is the store in an etcd cluster, for environments of many
// machines.
//
// It is no general client of etcd and manages no cluster: members, compaction,
// quotas and users are their operator's. Only package state imports it (and it
// alone imports etcd's client); of bijou it imports store and store/opener only. It wants
// etcd 3.4.25, 3.5.8, 3.6 or newer: before those, watches tell of their progress
// too early.
//
// How it works, in the order of the files: url (what a state URL may say), dial
// (connection), login (the password, read again for each), tls (certificates, read again for each connection),
// keyspace (where keys lie in etcd), create (the marker that makes a prefix a store),
// retry and hedge (time-outs and repeated calls), errors, history (how a restored snapshot is
// noticed), snapshot (reads), commit and compile (transactions), leasedkeys (what
// prefix conditions must know of leases), sweep (tombstones that nobody needs any
// more), lease, and watches: watchstream (one stream of events), watchmux (all watchers
// over one stream), replay (what happened before) and watcher. How these four work
// together is in docs/reference/etcd-watch.md.
//
// # Prefix conditions
//
// etcd compares what is there, but cannot compare what is not there any more.
// So every transaction that deletes a key writes a tombstone beside it, and so does
// one that puts a key under a lease, which may vanish unseen. A prefix condition
// compares the newest revision below the prefix, the newest tombstone below it, and
// the presence of each leased key that was there at its revision. That is exact.
package etcd

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
	"bijou/state/store/opener"
)

// db is one process's handle of a store.
type db struct {
	*opener.Opener
	config config
	keys   keyCodec
	auth   *authenticator
	client *clientv3.Client
	marker int64 // the revision that created the store's marker

	readLatency atomic.Int64 // of the last read, in nanoseconds
	lastHedge   atomic.Int64 // when only a second member answered a read, in nanoseconds since 1970
	history     historyTracker
	leasedKeys  *leasedKeyCache
	watches     *watchMux
	sweeper     sweeper
}

// openTimeout bounds Open and Create beside their contexts.
const openTimeout = 10 * time.Second

// Open opens the store at the URL, which Create has made; if there is none, it returns
// ErrNoStore. If no member answers, it fails within ten seconds, or at the context's
// deadline if that is sooner.
//
//	etcd://h1:2379,h2:2379/prefix?ca=FILE&cert=FILE&key=FILE&user=NAME&password-file=FILE
//	etcd+unix:///run/etcd.sock,/run/other.sock?prefix=/prefix&user=NAME&password-file=FILE
//
// All options are optional but the prefix of etcd+unix. With ca or cert, or
// tls=true (the system's authorities), connections are over TLS. Files are named
// by absolute paths; key and password-file are to be readable by their owner only.
func Open(ctx context.Context, url string) (store.Store, error) {
	p, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	d, err := open(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("cannot open store %q: %w", url, err)
	}
	return d, nil
}

func open(ctx context.Context, p config) (*db, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	d, err := connect(ctx, p)
	if err != nil {
		return nil, err
	}
	if d.marker, err = d.readMarker(ctx); err != nil {
		d.client.Close()
		return nil, err
	}
	d.Go(d.sweeper.run)
	return d, nil
}

func connect(ctx context.Context, p config) (*db, error) {
	a := &authenticator{config: p, now: time.Now}
	client, err := dial(ctx, p, a)
	if err != nil {
		return nil, err
	}
	d := &db{
		Opener: opener.New(), config: p, auth: a, keys: keyCodec{root: p.prefix + "/"}, client: client, leasedKeys: newLeasedKeyCache(),
	}
	d.watches, d.sweeper.d = newWatchMux(d), d
	return d, nil
}

func (d *db) Close() error {
	d.Opener.Close(func() { d.client.Close() })
	return nil
}
