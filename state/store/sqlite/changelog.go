package sqlite

import (
	"context"
	"database/sql"

	"bijou/state/store"
)

// prefixClause returns the SQL for keys that have the prefix, and its arguments. A prefix of 0xff
// bytes only has no end. (An empty blob would be bound as NULL; the smallest key is one zero byte.)
func prefixClause(prefix string) (clause string, args []any) {
	first := []byte(prefix)
	end := []byte(prefix)
	if prefix == "" {
		first = []byte{0}
	}

	for n := len(end); n > 0; n-- {
		if end[n-1] < 0xff {
			end = end[:n]
			end[n-1]++
			return "key >= ? AND key < ?", []any{first, end}
		}
	}

	return "key >= ?", []any{first}
}

// logSegment is a part of the change log: whole commits, without gap.
type logSegment struct {
	batches []store.Batch
	end     int64 // the last revision it covers
	more    bool  // the log went on after it when it was read
	trimmed int64 // up to where the log was trimmed
}

// logSQL has at least one row, with NULLs if nothing is logged after the
// revision. One statement, so that head and log are of one moment.
const logSQL = `SELECT h.revision, h.trimmed, l.rev, l.key, l.deleted
	FROM head h LEFT JOIN log l ON l.rev > ? WHERE h.id = 1 ORDER BY l.rev, l.key`

// maxReadCommits bounds one read of the log.
const maxReadCommits = 256

// readLog reads the commits after the revision, of the keys that are wanted.
func (d *db) readLog(ctx context.Context, after int64, wanted func(key string) bool) (s logSegment, err error) {
	c, err := d.readers.get(ctx)
	if err != nil {
		return logSegment{}, err
	}
	defer d.readers.put(c)
	var newest, last int64

	err = c.queryRows(logSQL, []any{after}, func(rows *sql.Rows) (bool, error) {
		var revision, deleted sql.NullInt64
		var key sql.RawBytes
		if err := rows.Scan(&newest, &s.trimmed, &revision, &key, &deleted); err != nil || !revision.Valid {
			return false, err
		}
		if revision.Int64 != last && len(s.batches) >= maxReadCommits {
			s.more = true
			s.end = last
			return false, nil
		}

		last = revision.Int64
		if e := (store.Event{Key: string(key), Deleted: deleted.Int64 != 0}); wanted(e.Key) {
			s.addEvent(last, e)
		}
		return true, nil
	})

	if !s.more {
		s.end = max(newest, after)
	}
	return s, d.explain(err)
}

// addEvent adds an event to the batch of its revision.
func (s *logSegment) addEvent(revision int64, e store.Event) {
	n := len(s.batches)
	if n == 0 || s.batches[n-1].Revision != revision {
		s.batches = append(s.batches, store.Batch{Revision: revision})
		n++
	}

	b := &s.batches[n-1]
	b.Events = append(b.Events, e)
}

// maxRecentBatches bounds what the tailer remembers: of as many commits a thousand units, which
// one change has woken, may be behind.
const maxRecentBatches = 1024
