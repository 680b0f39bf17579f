package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state/osutil"
	"bijou/state/store"
	"bijou/state/store/handle"
)

// Lease inserts a row into the lease table, and refreshes it as long as this process lives.
func (d *db) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	ttl = max(ttl, time.Millisecond)
	id, requested, err := d.grantLease(ctx, ttl, d.self())
	if err != nil {
		return nil, err
	}

	return d.KeepLease(handle.GrantedLease{
		ID:          id,
		TTL:         ttl,
		RequestedAt: requested,
		Refresh:     func(ctx context.Context) (bool, error) { return d.RefreshLease(ctx, id) },
		Revoke:      func(ctx context.Context) error { return d.RevokeLease(ctx, id) },
	})
}

// GrantLease inserts a row without an owner: the end of this process does not end the lease.
func (d *db) GrantLease(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	id, _, err := d.grantLease(ctx, max(ttl, time.Millisecond), leaseOwner{})
	return id, err
}

// grantLease inserts a lease. It refreshes one that had to wait long for the file's lock before it returns
// it: that lease would be as good as expired.
func (d *db) grantLease(
	ctx context.Context,
	ttl time.Duration,
	owner leaseOwner,
) (id store.LeaseID, requested time.Time, err error) {
	if err := d.checkPresent(ctx); err != nil {
		return 0, requested, err
	}

	requested = time.Now()
	n, err := d.writer.runJob(ctx, func(t *writeTxn) (int64, error) { return t.insertLease(ttl, owner) })
	if err != nil {
		return 0, requested, err
	}

	id = store.LeaseID(n)
	if time.Since(requested) <= ttl/3 {
		return id, requested, nil
	}

	requested = time.Now()
	lives, err := d.RefreshLease(ctx, id)
	if err == nil && !lives {
		err = store.ErrLeaseLost
	}

	return id, requested, err
}

// RefreshLease raises the lease's counter, and reports whether the lease lives. It makes no revision and
// rings no bell.
func (d *db) RefreshLease(ctx context.Context, id store.LeaseID) (lives bool, err error) {
	n, err := d.writer.runJob(ctx, func(t *writeTxn) (int64, error) {
		t.changed = true
		return t.c.exec("UPDATE lease SET counter = counter + 1 WHERE id = ?", int64(id))
	})
	return n > 0, err
}

// RevokeLease deletes the row, and with it the lease's keys.
func (d *db) RevokeLease(ctx context.Context, id store.LeaseID) error {
	_, err := d.writer.runJob(ctx, func(t *writeTxn) (int64, error) { return 0, t.endLease(id) })
	return err
}

func (t *writeTxn) insertLease(ttl time.Duration, o leaseOwner) (id int64, err error) {
	t.changed = true
	_, err = t.c.queryRow(`INSERT INTO lease (ttl_ms, counter, pid, start, pidns, boot)
		VALUES (?, 0, ?, ?, ?, ?) RETURNING id`,
		[]any{ttl.Milliseconds(), o.pid, o.start, o.pidns, o.boot}, &id)
	return id, err
}

// openSweepTimeout is how long Open waits for the file's lock to end the leases of
// dead processes. After it they are left to the next poll.
const openSweepTimeout = 2 * time.Second

// leaseSweeper ends the leases of other processes: at once if their owner is provably
// dead, else when it has itself seen them unrefreshed for their TTL.
type leaseSweeper struct {
	d        *db
	observed map[store.LeaseID]observation
}

// observation is of a lease that was seen with the same counter each time.
type observation struct {
	counter int64
	age     time.Duration // how long it was seen so
	last    time.Time
}

type leaseRow struct {
	id      store.LeaseID
	ttl     time.Duration
	counter int64
	owner   leaseOwner
}

// sweepAtOpen ends the leases of dead processes, so that the first snapshot is truthful. It leaves to the
// next poll what it cannot sweep.
func (s *leaseSweeper) sweepAtOpen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, openSweepTimeout)
	defer cancel()
	s.sweepOnce(ctx)
}

// run ends expired leases at intervals.
func (s *leaseSweeper) run() {
	poll := time.NewTicker(s.d.options.PollInterval)
	defer poll.Stop()

	for {
		select {
		case <-poll.C:
			s.sweepOnce(context.Background())
		case <-s.d.Context().Done():
			return
		case <-s.d.Gone():
			return
		}
	}
}

// sweepOnce ends the leases that were not refreshed for their time, or whose owners are dead. An error ends
// the round; the next round tries again.
func (s *leaseSweeper) sweepOnce(ctx context.Context) {
	var rows []leaseRow
	err := s.d.readers.withConn(ctx, func(c *conn) (err error) {
		rows, err = readLeases(c)
		return err
	})
	if err != nil {
		return
	}

	now := time.Now()
	seen := map[store.LeaseID]observation{}
	for _, r := range rows {
		seen[r.id] = s.observeLease(r, now)
		if seen[r.id].age < r.ttl && !r.owner.isProvablyDead(s.d.self()) {
			continue
		}
		if err := s.endUnlessRefreshed(ctx, r); err != nil {
			break
		}
	}
	s.observed = seen
}

// observeLease returns the lease's age: the time since its counter has last changed. It adds at most two
// polls a round. If this process stood still for longer, the lease's holder may have stood still with it.
func (s *leaseSweeper) observeLease(r leaseRow, now time.Time) observation {
	before, known := s.observed[r.id]
	if !known || before.counter != r.counter {
		return observation{counter: r.counter, last: now}
	}
	between := min(now.Sub(before.last), 2*s.d.options.PollInterval)
	return observation{counter: r.counter, age: before.age + between, last: now}
}

// endUnlessRefreshed ends the lease if its counter is still that of the row.
func (s *leaseSweeper) endUnlessRefreshed(ctx context.Context, r leaseRow) error {
	_, err := s.d.writer.runJob(ctx, func(t *writeTxn) (int64, error) {
		var found int
		same, err := t.c.queryRow("SELECT 1 FROM lease WHERE id = ? AND counter = ?",
			[]any{int64(r.id), r.counter}, &found)
		if err != nil || !same {
			return 0, err
		}

		return 0, t.endLease(r.id)
	})

	return err
}

// readLeases reads all leases with their owners.
func readLeases(c *conn) ([]leaseRow, error) {
	var all []leaseRow
	err := c.queryRows("SELECT id, ttl_ms, counter, pid, start, pidns, boot FROM lease", nil, func(rows *sql.Rows) (bool, error) {
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

// leaseOwner identifies the process that holds a lease, so that others can find it dead.
// What could not be found out is empty, and proves nothing.
type leaseOwner struct {
	pid   int
	start string // in clock ticks after boot
	pidns string
	boot  string
}

// currentOwner returns this process as the owner of leases.
func currentOwner() leaseOwner {
	o := leaseOwner{pid: os.Getpid()}
	o.pidns, _ = os.Readlink("/proc/self/ns/pid")
	o.boot = osutil.BootID()
	stat, err := osutil.ReadProcStat(o.pid)
	if self, _ := os.Readlink("/proc/self"); self == fmt.Sprint(o.pid) && err == nil {
		o.start = stat.Start()
	} // otherwise /proc is of another pid namespace, and its numbers mean others
	return o
}

// isProvablyDead reports whether this process, self, can prove that the owner is dead. It can only if both
// share a pid namespace, since a container has a boot id of its own. The owner is dead if its machine was
// rebooted since, or if its pid is free, a zombie's, or that of a process that started at a different time.
func (o leaseOwner) isProvablyDead(self leaseOwner) bool {
	if o.boot == "" || self.boot == "" || o.pidns == "" || o.pidns != self.pidns {
		return false
	}
	if o.boot != self.boot {
		return true
	}
	if errors.Is(unix.Kill(o.pid, 0), unix.ESRCH) {
		return true
	}
	if o.start == "" || self.start == "" {
		return false
	}

	stat, err := osutil.ReadProcStat(o.pid)
	return err == nil && (stat.Start() != o.start || stat.IsGone())
}
