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

// Compact trims the history up to and with the revision.
func Compact(s store.Store, revision int64) error {
	_, err := s.(*db).writer.runJob(context.Background(), func(t *writeTxn) (int64, error) {
		t.changed = true
		return 0, t.trimTo(revision)
	})
	return err
}

// Expire ends a lease behind its holder's back.
func Expire(s store.Store, id store.LeaseID) error {
	_, err := s.(*db).writer.runJob(context.Background(), func(t *writeTxn) (int64, error) { return 0, t.endLease(id) })
	return err
}

// Kill stops the handle without revoking its leases.
func Kill(s store.Store) {
	s.(*db).AbandonLeases()
	s.Close()
}

// Mute makes the handle's commits ring no doorbell, as if it were killed before it could.
func Mute(s store.Store) {
	s.(*db).doorbell.path = "/nonexistent/bell"
}

// LimitPages makes the disk full at so many pages.
func LimitPages(s store.Store, pages string) error {
	_, err := s.(*db).writer.runJob(context.Background(), func(t *writeTxn) (int64, error) {
		return t.c.exec("PRAGMA max_page_count = " + pages)
	})
	return err
}

// OpenReaders returns how many connections for reading count as open.
func OpenReaders(s store.Store) int {
	p := s.(*db).readers
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// BreakSnapshot makes the connection of a snapshot one that cannot be used again.
func BreakSnapshot(s store.Snapshot) error {
	_, err := s.(*snapshot).conn.exec("ROLLBACK")
	return err
}

// QueryPlan is SQLite's plan for the query that reads the log.
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

// Path is where the store's file is.
func Path(s store.Store) string { return s.(*db).file.path }

// DiscardSnapshot discards the connection of a snapshot within its transaction, as an error of the disk does.
func DiscardSnapshot(snap store.Snapshot) {
	s := snap.(*snapshot)
	s.d.readers.discard(s.conn)
	s.conn = nil
}
