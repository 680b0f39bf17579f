package sqlite

import (
	"context"
	"database/sql"

	"bijou/state/store"
)

// prefixClause returns an SQL condition that selects the keys with the prefix, and the arguments of its
// parameters.
func prefixClause(prefix string) (clause string, args []any) {
	first := []byte(prefix)
	if prefix == "" {
		// This is the smallest key. The driver would bind an empty blob as NULL.
		first = []byte{0}
	}

	// end is the smallest key after all keys with the prefix. To get it, increment the last byte that is not
	// 0xff, and drop the bytes after it.
	end := []byte(prefix)
	for n := len(end); n > 0; n-- {
		if end[n-1] < 0xff {
			end = end[:n]
			end[n-1]++
			return "key >= ? AND key < ?", []any{first, end}
		}
	}

	// No key follows those with a prefix that is empty or has only 0xff bytes.
	return "key >= ?", []any{first}
}

// logSegment is a part of the change log: whole commits, without gaps.
type logSegment struct {
	batches []store.Batch
	end     int64 // the last revision that the segment covers
	more    bool  // whether the log continued after the segment when it was read
	trimmed int64 // the last revision that was trimmed from the log
}

// logSQL reads the table head and the log after a revision. It is one statement, so that both come from the
// same moment. If the log has nothing after the revision, logSQL returns one row, with NULLs for the log.
const logSQL = `SELECT h.revision, h.trimmed, l.rev, l.key, l.deleted
	FROM head h LEFT JOIN log l ON l.rev > ? WHERE h.id = 1 ORDER BY l.rev, l.key`

// maxReadCommits is the largest number of commits that one read of the log returns.
const maxReadCommits = 256

// readLog reads the log after the revision, up to the first maxReadCommits commits that have a wanted key. The
// batches have only the wanted keys. If the log was trimmed beyond the revision, commits after the revision
// are missing from the log: s.trimmed is then greater than after, and the caller must not use the batches.
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
		if err := rows.Scan(&newest, &s.trimmed, &revision, &key, &deleted); err != nil {
			return false, err
		}
		// Without an entry in the log, the query has one row with only the head's columns.
		if !revision.Valid {
			return false, nil
		}

		// Stop only between two commits.
		if revision.Int64 != last && len(s.batches) >= maxReadCommits {
			s.more = true
			s.end = last
			return false, nil
		}

		last = revision.Int64
		e := store.Event{Key: string(key), Deleted: deleted.Int64 != 0}
		if wanted(e.Key) {
			s.addEvent(last, e)
		}
		return true, nil
	})
	if err != nil {
		return logSegment{}, d.explain(err)
	}

	if !s.more {
		// The newest commits may not be in the log, since quiet operations are not logged.
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

// maxRecentBatches is how many commits the tailer remembers. This suffices if one change wakes a thousand
// units, and each of them commits before it watches again.
const maxRecentBatches = 1024
