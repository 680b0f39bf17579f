package sqlite

import (
	"context"
	"database/sql"

	"bijou/state/store"
)

// prefixClause returns the SQL for keys that have the prefix, and its arguments. For an empty prefix the range
// begins with the smallest key, one zero byte, since the driver binds an empty blob as NULL. For a prefix of only
// 0xff bytes the range has no end.
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

// logSegment is a part of the change log: whole commits, without gaps.
type logSegment struct {
	batches []store.Batch
	end     int64 // the last revision that the segment covers
	more    bool  // whether the log continued after the segment when it was read
	trimmed int64 // the last revision that was trimmed from the log
}

// logSQL reads the head and the log after a revision. It is one statement, so that both come from the same
// moment. It returns at least one row, with NULLs if the log has nothing after the revision.
const logSQL = `SELECT h.revision, h.trimmed, l.rev, l.key, l.deleted
	FROM head h LEFT JOIN log l ON l.rev > ? WHERE h.id = 1 ORDER BY l.rev, l.key`

// maxReadCommits is the largest number of commits that one read of the log returns.
const maxReadCommits = 256

// readLog reads the commits after the revision. Their batches have only the wanted keys.
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

	if err != nil {
		return logSegment{}, d.explain(err)
	}

	if !s.more {
		s.end = max(newest, after)
	}
	return s, nil
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

// maxRecentBatches is how many commits the tailer remembers. It is large enough for the case that one change
// wakes a thousand units, and each of them commits before it watches again.
const maxRecentBatches = 1024
