package sqlite

import (
	"context"
	"database/sql"
	"time"

	"bijou/state/store"
)

// openPatience is how long Open waits for the file's lock to end the leases of
// dead processes. After it they are left to the poll.
const openPatience = 2 * time.Second

// sweeper ends the leases of others: at once if their process is provably
// dead, else when it has itself seen them unrefreshed for their TTL.
type sweeper struct {
	d    *db
	seen map[store.LeaseID]sighting
}

// sighting is how long a lease was seen with the same counter.
type sighting struct {
	counter int64
	age     time.Duration
	last    time.Time
}

// leaseRow is one lease of anybody.
type leaseRow struct {
	id      store.LeaseID
	ttl     time.Duration
	counter int64
	owner   owner
}

func newSweeper(d *db) *sweeper {
	return &sweeper{d: d, seen: map[store.LeaseID]sighting{}}
}

// atOpen ends the leases of dead processes, so that the first snapshot is
// truthful. What fails here is left to the poll.
func (s *sweeper) atOpen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, openPatience)
	defer cancel()
	s.sweep(ctx)
}

func (s *sweeper) run() {
	poll := time.NewTicker(s.d.options.Poll)
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
			s.sweep(context.Background())
		case <-s.d.Closed():
			return
		case <-s.d.Gone():
			return
		}
	}
}

// sweep looks at all leases. Errors end the round: the next one tries again.
func (s *sweeper) sweep(ctx context.Context) {
	var rows []leaseRow
	err := s.d.readers.with(ctx, func(c *conn) (err error) {
		rows, err = readLeases(c)
		return err
	})
	if err != nil {
		return
	}
	now, seen := time.Now(), map[store.LeaseID]sighting{}
	for _, r := range rows {
		seen[r.id] = s.sight(r, now)
		if seen[r.id].age < r.ttl && !r.owner.deadFor(s.d.self()) {
			continue
		}
		if err := s.end(ctx, r); err != nil {
			break
		}
	}
	s.seen = seen
}

// sight adds to a lease's age what lies between two looks, but never more than
// two polls: if this process stood still, it has not seen anything, and the
// holder may have stood still with it.
func (s *sweeper) sight(r leaseRow, now time.Time) sighting {
	before, known := s.seen[r.id]
	if !known || before.counter != r.counter {
		return sighting{counter: r.counter, last: now}
	}
	between := min(now.Sub(before.last), 2*s.d.options.Poll)
	return sighting{counter: r.counter, age: before.age + between, last: now}
}

// end ends the lease unless it was refreshed since it was read.
func (s *sweeper) end(ctx context.Context, r leaseRow) error {
	_, err := s.d.writer.do(ctx, func(t *turn) (int64, error) {
		var found int
		same, err := t.c.row("SELECT 1 FROM lease WHERE id = ? AND counter = ?", []any{int64(r.id), r.counter}, &found)
		if err != nil || !same {
			return 0, err
		}
		return 0, t.endLease(r.id)
	})
	return err
}

func readLeases(c *conn) ([]leaseRow, error) {
	var all []leaseRow
	err := c.rows("SELECT id, ttl_ms, counter, pid, start, pidns, boot FROM lease", nil, func(rows *sql.Rows) (bool, error) {
		var r leaseRow
		var ms int64
		o := &r.owner
		err := rows.Scan(&r.id, &ms, &r.counter, &o.pid, &o.start, &o.pidns, &o.boot)
		r.ttl = time.Duration(ms) * time.Millisecond
		all = append(all, r)
		return true, err
	})
	return all, err
}
