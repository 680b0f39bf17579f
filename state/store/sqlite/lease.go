package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state/osutil"
	"bijou/state/store"
	"bijou/state/store/handle"
)

// Lease inserts a row into the lease table, and keeps refreshing it until the lease is closed or lost, or the
// process exits.
func (d *db) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	// The table has the TTL in milliseconds.
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

// GrantLease inserts a row without an owner, so that the lease does not end with this process. The row has the
// time of the last refresh instead.
func (d *db) GrantLease(ctx context.Context, ttl time.Duration) (store.LeaseID, error) {
	noOwner := leaseOwner{boot: d.self().boot, start: refreshMark(0)}
	id, _, err := d.grantLease(ctx, max(ttl, time.Millisecond), noOwner)
	return id, err
}

// grantLease inserts a lease. If the insertion waited long for the file's lock, it refreshes the lease at
// once, since the lease would soon expire. The caller must count the TTL from requested, the time at which
// the insertion or the refresh began.
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
	if err != nil {
		return 0, requested, err
	}
	if !lives {
		return 0, requested, store.ErrLeaseLost
	}

	return id, requested, nil
}

// RefreshLease increments the lease's counter, and reports whether the lease still exists. It creates no
// revision and does not ring the doorbell.
func (d *db) RefreshLease(ctx context.Context, id store.LeaseID) (lives bool, err error) {
	n, err := d.writer.runJob(ctx, func(t *writeTxn) (int64, error) {
		t.changed = true
		return t.refreshLease(id)
	})
	return n > 0, err
}

// refreshLease increments the lease's counter. For a lease without an owner, whose pid is 0, refreshLease also
// writes a refreshMark with the current time. It returns the number of refreshed rows.
func (t *writeTxn) refreshLease(id store.LeaseID) (int64, error) {
	var counter, pid int64
	found, err := t.c.queryRow("SELECT counter, pid FROM lease WHERE id = ?", []any{int64(id)}, &counter, &pid)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, nil
	}
	if pid != 0 {
		return t.c.exec("UPDATE lease SET counter = counter + 1 WHERE id = ?", int64(id))
	}
	return t.c.exec("UPDATE lease SET counter = counter + 1, start = ? WHERE id = ?", refreshMark(counter+1), int64(id))
}

// refreshMark returns the value of the column start for a lease without an owner: the lease's counter after a
// refresh, and the current time. Previous versions refresh a lease without writing a mark. The old mark then
// has a different counter than the lease, and isExpired ignores it.
func refreshMark(counter int64) string {
	return fmt.Sprintf("%d@%d", counter, monotonicTime().Milliseconds())
}

// isExpired reports whether the lease has no owner, and its refreshMark shows that nobody has refreshed it for
// its TTL. It needs no earlier observation of the lease, so even short commands can end such leases.
func (r leaseRow) isExpired(self leaseOwner) bool {
	// The time in the mark counts from the host's boot, so it means nothing after a reboot.
	if r.owner.pid != 0 || r.owner.boot == "" || r.owner.boot != self.boot {
		return false
	}

	// Without an owner, start is the mark. Its counter is old if a previous version has refreshed the lease since.
	counter, ms, ok := strings.Cut(r.owner.start, "@")
	refreshed, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil || counter != strconv.FormatInt(r.counter, 10) {
		return false
	}
	return monotonicTime() > time.Duration(refreshed)*time.Millisecond+r.ttl
}

// monotonicTime returns the time since the host's boot, without the time in which the host was suspended. It
// is the same for all processes on the host.
func monotonicTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // cannot happen: Linux always has this clock
	}
	return time.Duration(now.Nano())
}

// RevokeLease deletes the row, and with it the lease's keys.
func (d *db) RevokeLease(ctx context.Context, id store.LeaseID) error {
	_, err := d.writer.runJob(ctx, func(t *writeTxn) (int64, error) { return 0, t.endLease(id) })
	return err
}

// insertLease inserts a row into the lease table, and returns its id.
func (t *writeTxn) insertLease(ttl time.Duration, o leaseOwner) (id int64, err error) {
	t.changed = true
	_, err = t.c.queryRow(`INSERT INTO lease (ttl_ms, counter, pid, start, pidns, boot)
		VALUES (?, 0, ?, ?, ?, ?) RETURNING id`,
		[]any{ttl.Milliseconds(), o.pid, o.start, o.pidns, o.boot}, &id)
	return id, err
}

// openSweepTimeout is how long Open tries to end the leases of dead processes, which needs the file's lock. After
// that the next poll ends them.
const openSweepTimeout = 2 * time.Second

// leaseSweeper ends the leases of other processes. It ends a lease at once if the owner is provably dead, or
// if the lease has no owner and its row shows that it has expired. Otherwise it ends the lease after it has
// observed for the lease's TTL that nobody refreshes the lease.
type leaseSweeper struct {
	d        *db
	observed map[store.LeaseID]observation // in the previous round
}

// observation is how long a lease was seen with the same counter.
type observation struct {
	counter int64
	age     time.Duration // how long the counter was seen unchanged
	last    time.Time     // when the lease was last seen
}

// leaseRow is a row of the lease table.
type leaseRow struct {
	id      store.LeaseID
	ttl     time.Duration
	counter int64
	owner   leaseOwner
}

// sweepAtOpen ends the leases of dead processes, so that the first snapshot does not show their keys. If it
// fails, the next poll tries again.
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

// sweepOnce ends the leases that were not refreshed for their TTL, or whose owners are dead. It stops at the
// first error, and the next round tries again.
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
	observed := map[store.LeaseID]observation{}
	for _, r := range rows {
		observed[r.id] = s.observeLease(r, now)
		self := s.d.self()
		// age needs earlier rounds. The other two checks do not.
		isAlive := observed[r.id].age < r.ttl && !r.owner.isProvablyDead(self) && !r.isExpired(self)
		if isAlive {
			continue
		}
		if err := s.endUnlessRefreshed(ctx, r); err != nil {
			break
		}
	}
	// A lease that this round did not reach counts as new in the next round, and so lives longer.
	s.observed = observed
}

// observeLease returns how long the lease's counter was seen unchanged, including the time since the previous
// round. It counts at most two poll intervals for that time: if this process was suspended for longer, the
// lease's holder may have been suspended with it.
func (s *leaseSweeper) observeLease(r leaseRow, now time.Time) observation {
	previous, known := s.observed[r.id]
	if !known || previous.counter != r.counter {
		return observation{counter: r.counter, last: now}
	}
	sinceLast := min(now.Sub(previous.last), 2*s.d.options.PollInterval)
	return observation{counter: r.counter, age: previous.age + sinceLast, last: now}
}

// endUnlessRefreshed ends the lease, unless its counter has changed since the row was read.
func (s *leaseSweeper) endUnlessRefreshed(ctx context.Context, r leaseRow) error {
	_, err := s.d.writer.runJob(ctx, func(t *writeTxn) (int64, error) {
		var found int
		same, err := t.c.queryRow("SELECT 1 FROM lease WHERE id = ? AND counter = ?",
			[]any{int64(r.id), r.counter}, &found)
		if err != nil {
			return 0, err
		}
		if !same {
			return 0, nil
		}

		return 0, t.endLease(r.id)
	})

	return err
}

// readLeases reads all leases with their owners.
func readLeases(c *conn) ([]leaseRow, error) {
	const query = "SELECT id, ttl_ms, counter, pid, start, pidns, boot FROM lease"

	var leases []leaseRow
	err := c.queryRows(query, nil, func(rows *sql.Rows) (bool, error) {
		var r leaseRow
		var ms int64
		o := &r.owner
		if err := rows.Scan(&r.id, &ms, &r.counter, &o.pid, &o.start, &o.pidns, &o.boot); err != nil {
			return false, err
		}

		r.ttl = time.Duration(ms) * time.Millisecond
		leases = append(leases, r)
		return true, nil
	})

	return leases, err
}

// leaseOwner identifies the process that holds a lease, so that other processes can find out that it is dead.
// A field is empty if it could not be determined. An empty field proves nothing.
type leaseOwner struct {
	pid   int    // 0 for a lease without an owner
	start string // when the process started, in clock ticks after boot; a refreshMark for a lease without an owner
	pidns string // the pid namespace of pid
	boot  string // the kernel's boot id
}

// currentOwner returns this process as the owner of leases.
func currentOwner() leaseOwner {
	o := leaseOwner{pid: os.Getpid()}
	o.pidns, _ = os.Readlink("/proc/self/ns/pid")
	o.boot = osutil.BootID()

	// If /proc shows a different pid namespace, the same number names a different process there. start then
	// stays empty.
	self, _ := os.Readlink("/proc/self")
	procShowsOwnPID := self == fmt.Sprint(o.pid)
	stat, err := osutil.ReadProcStat(o.pid)
	if procShowsOwnPID && err == nil {
		o.start = stat.Start()
	}
	return o
}

// isProvablyDead reports whether this process, self, can prove that the owner is dead. It can prove this only
// if both are in the same pid namespace, since a container on the same host has different pids, and can have
// a different boot id. The owner is dead if the boot id has changed, since the host was then rebooted. It is
// also dead if its pid is free. If the start times of both are known, it is also dead if its pid belongs to a
// zombie or to a process with a different start time.
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
	// Without its own start time, this process cannot rely on /proc: see currentOwner.
	if o.start == "" || self.start == "" {
		return false
	}

	stat, err := osutil.ReadProcStat(o.pid)
	return err == nil && (stat.Start() != o.start || stat.IsGone())
}
