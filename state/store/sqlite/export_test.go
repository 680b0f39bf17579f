package sqlite

import (
	"context"
	"database/sql"

	"bijou/state/store"
)

// OpenWith is Open with options.
func OpenWith(ctx context.Context, path string, options Options) (store.Store, error) {
	return openWith(ctx, path, options)
}

// Compact trims the history up to and including the revision.
func Compact(s store.Store, revision int64) error {
	_, err := s.(*db).writer.runJob(context.Background(), func(t *writeTxn) (int64, error) {
		t.changed = true
		return 0, t.trimTo(revision)
	})
	return err
}

// Expire ends a lease without its holder's knowledge.
func Expire(s store.Store, id store.LeaseID) error {
	_, err := s.(*db).writer.runJob(context.Background(), func(t *writeTxn) (int64, error) { return 0, t.endLease(id) })
	return err
}

// RefreshAsBefore refreshes a lease as previous versions do, which write no time of the refresh.
func RefreshAsBefore(s store.Store, id store.LeaseID) error {
	_, err := s.(*db).writer.runJob(context.Background(), func(t *writeTxn) (int64, error) {
		t.changed = true
		return t.c.exec("UPDATE lease SET counter = counter + 1 WHERE id = ?", int64(id))
	})
	return err
}

// Kill stops the handle without revoking its leases.
func Kill(s store.Store) {
	s.(*db).AbandonLeases()
	s.Close()
}

// Mute stops the handle's commits from ringing the doorbell, as if the process were killed before it
// could.
func Mute(s store.Store) {
	s.(*db).doorbell.path = "/nonexistent/bell"
}

// LimitPages limits the file to the given number of pages, as a full disk would.
func LimitPages(s store.Store, pages string) error {
	_, err := s.(*db).writer.runJob(context.Background(), func(t *writeTxn) (int64, error) {
		return t.c.exec("PRAGMA max_page_count = " + pages)
	})
	return err
}

// ReadWhileClosing closes the read connections as Close does, and then begins a read, as a watcher does that has
// checked the store just before.
func ReadWhileClosing(s store.Store) error {
	d := s.(*db)
	d.readers.close()
	_, err := d.readLog(context.Background(), 0, func(string) bool { return true })
	return err
}

// OpenReaders returns the number of read connections that count as open.
func OpenReaders(s store.Store) int {
	p := s.(*db).readers
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// BreakSnapshot makes a snapshot's connection unusable.
func BreakSnapshot(s store.Snapshot) error {
	_, err := s.(*snapshot).conn.exec("ROLLBACK")
	return err
}

// QueryPlan returns SQLite's plan for the query that reads the log.
func QueryPlan(s store.Store) (plan string, err error) {
	err = s.(*db).readers.withConn(context.Background(), func(c *conn) error {
		return c.queryRows("EXPLAIN QUERY PLAN "+logSQL, []any{5}, func(rows *sql.Rows) (bool, error) {
			var id, parent, unused int
			var step string
			err := rows.Scan(&id, &parent, &unused, &step)
			plan += step + "\n"
			return true, err
		})
	})
	return plan, err
}

// Path returns the path of the store's file.
func Path(s store.Store) string { return s.(*db).file.path }

// DiscardSnapshot discards a snapshot's connection within its transaction, as an error of the disk
// would.
func DiscardSnapshot(snap store.Snapshot) {
	s := snap.(*snapshot)
	s.d.readers.discard(s.conn)
	s.conn = nil
}
