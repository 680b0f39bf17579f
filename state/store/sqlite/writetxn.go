package sqlite

import (
	"database/sql"
	"errors"

	"bijou/state/store"
)

// writeTxn is one SQLite transaction of the writer. Its jobs run one after the other, and each job sees the
// writes of the jobs before it.
type writeTxn struct {
	c           *conn
	keepCommits int64

	revision   int64      // the newest revision, including the jobs so far
	trimmed    int64      // the last revision that was trimmed from the log
	generation generation // the generation of the previous commit
	changed    bool       // whether there is something to commit
	logged     bool       // whether there is something for watchers
}

// readHead reads the head row, which every store has, into t. It returns the position of the previous commit.
func (t *writeTxn) readHead() (position, error) {
	const query = "SELECT revision, trimmed, generation FROM head"
	var blob []byte
	if _, err := t.c.queryRow(query, nil, &t.revision, &t.trimmed, &blob); err != nil {
		return position{}, err
	}

	g, err := parseGeneration(blob)
	if err != nil {
		return position{}, err
	}
	t.generation = g
	return position{t.revision, g}, nil
}

// writeHead writes the head row, and returns the position of this commit.
func (t *writeTxn) writeHead() (position, error) {
	p := position{t.revision, t.generation.next()}
	_, err := t.c.exec("UPDATE head SET revision = ?, trimmed = ?, generation = ?", t.revision, t.trimmed,
		p.generation.bytes())
	return p, err
}

// runJobs runs the jobs that were not cancelled, and sets their results and the errors of refused jobs. A
// refused job does not affect the other jobs. Then runJobs trims the log if it has become too long. If runJobs
// returns an error, the whole transaction has failed.
func (t *writeTxn) runJobs(group []*job) error {
	for _, j := range group {
		if !j.tryClaim() {
			continue
		}

		var refused refusal
		result, err := j.run(t)
		j.result = result
		if errors.As(err, &refused) {
			j.err = refused.error
			continue
		}
		if err != nil {
			return err
		}
	}

	// Trimming is expensive. So let the log grow by an eighth before it is trimmed.
	if t.revision-t.trimmed > t.keepCommits+t.keepCommits/8 {
		return t.trimTo(t.revision - t.keepCommits)
	}

	return nil
}

// apply checks the transaction's conditions and the leases of its puts, and then writes the operations. It
// returns the newest revision. If a check fails, it returns a refusal with ErrConflict or ErrLeaseLost, and has
// written nothing. The writer commits later, in writeGroup.
func (t *writeTxn) apply(txn store.Txn) (int64, error) {
	for _, c := range txn.Conds {
		holds, err := t.condHolds(c)
		if err != nil {
			return 0, err
		}
		if !holds {
			return 0, refusal{store.ErrConflict}
		}
	}

	for _, o := range txn.Ops {
		if o.Lease == 0 || o.Delete {
			continue
		}
		lives, err := t.c.queryRow("SELECT 1 FROM lease WHERE id = ?", []any{int64(o.Lease)}, new(int))
		if err != nil {
			return 0, err
		}
		if !lives {
			return 0, refusal{store.ErrLeaseLost}
		}
	}

	return t.writeOps(txn.Ops)
}

// condHolds reports whether a condition of the transaction holds: the key has the revision or, without a key,
// the log has all changes after the revision and none of them is below the prefix. See [store.Cond].
func (t *writeTxn) condHolds(c store.Cond) (bool, error) {
	if c.Key != "" {
		var revision int64
		_, err := t.c.queryRow("SELECT rev FROM kv WHERE key = ?", []any{[]byte(c.Key)}, &revision)
		return revision == c.Revision, err // revision is 0 if there is no row, so that the key is absent
	}

	// The log no longer has all changes after the revision.
	if c.Revision < t.trimmed {
		return false, nil
	}

	// Usually the revision comes from a snapshot that was just read, so few log entries follow it.
	var found int
	clause, args := prefixClause(c.Prefix)
	changed, err := t.c.queryRow("SELECT 1 FROM log WHERE rev > ? AND "+clause+" LIMIT 1",
		append([]any{c.Revision}, args...), &found)
	return !changed, err
}

// writeOps writes the operations as one revision, if they change anything. It returns the newest revision.
func (t *writeTxn) writeOps(ops []store.Op) (int64, error) {
	next := t.revision + 1

	for _, o := range ops {
		effective, err := t.writeOp(o, next)
		if err != nil {
			return 0, err
		}
		if !effective {
			continue
		}

		t.revision = next
		t.changed = true
		if o.Quiet {
			continue
		}
		if _, err := t.c.exec("INSERT INTO log VALUES (?, ?, ?)", next, []byte(o.Key), o.Delete); err != nil {
			return 0, err
		}
		t.logged = true
	}

	return t.revision, nil
}

const putSQL = `INSERT INTO kv VALUES (?, ?, ?, ?)
	ON CONFLICT (key) DO UPDATE SET value = excluded.value, rev = excluded.rev, lease = excluded.lease`

// writeOp writes one operation at the revision, and reports whether it changed anything.
func (t *writeTxn) writeOp(o store.Op, revision int64) (bool, error) {
	if o.Delete {
		n, err := t.c.exec("DELETE FROM kv WHERE key = ?", []byte(o.Key))
		return n > 0, err
	}
	_, err := t.c.exec(putSQL, []byte(o.Key), o.Value, revision, int64(o.Lease))
	return true, err
}

// endLease removes a lease and its keys. It does nothing if the lease does not exist.
func (t *writeTxn) endLease(id store.LeaseID) error {
	n, err := t.c.exec("DELETE FROM lease WHERE id = ?", int64(id))
	if err != nil {
		return err
	}
	if n == 0 {
		return nil
	}

	t.changed = true
	// The index of leases has only rows whose lease is not 0, and SQLite uses it only for queries that say so.
	const query = "SELECT key FROM kv WHERE lease != 0 AND lease = ?"
	var ops []store.Op
	err = t.c.queryRows(query, []any{int64(id)}, func(rows *sql.Rows) (bool, error) {
		var key []byte
		if err := rows.Scan(&key); err != nil {
			return false, err
		}

		ops = append(ops, store.Op{Key: string(key), Delete: true})
		return true, nil
	})
	if err != nil {
		return err
	}

	_, err = t.writeOps(ops)
	return err
}

// trimTo removes the log's entries up to and including the revision.
func (t *writeTxn) trimTo(revision int64) error {
	t.trimmed = revision
	t.changed = true
	_, err := t.c.exec("DELETE FROM log WHERE rev <= ?", revision)
	return err
}
