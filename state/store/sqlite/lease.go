package sqlite

import (
	"context"
	"sync"
	"time"

	"bijou/state/store"
)

// revokePatience is how long Store.Close tries to revoke the leases. If it
// cannot, they expire.
const revokePatience = 5 * time.Second

// lease is one that this opener holds. Its goroutine refreshes it three times
// in a TTL: a row that is counted on, no revision, no bell.
type lease struct {
	d    *db
	id   store.LeaseID
	ttl  time.Duration
	done chan struct{}

	once sync.Once
	stop chan struct{}
}

// leases is those of one opener.
type leases struct {
	mu     sync.Mutex
	closed bool
	held   []*lease
}

func (d *db) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if err := d.present(ctx); err != nil {
		return nil, err
	}
	ttl = max(ttl, time.Millisecond)
	made := time.Now()
	id, err := d.writer.do(ctx, func(t *turn) (int64, error) { return t.grant(ttl, d.self()) })
	if err != nil {
		return nil, err
	}
	l := &lease{d: d, id: store.LeaseID(id), ttl: ttl, done: make(chan struct{}), stop: make(chan struct{})}
	if err := d.leases.add(l, made); err != nil {
		return nil, err
	}
	return l, nil
}

// add starts the lease's goroutine, unless the opener is being closed: then
// the lease expires, unused.
func (ls *leases) add(l *lease, made time.Time) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return store.ErrClosed
	}
	ls.held = append(ls.held, l)
	l.d.tasks.Go(func() { l.keep(made) })
	return nil
}

// abandon ends all goroutines and answers whose leases they were.
func (ls *leases) abandon() []*lease {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	held := ls.held
	ls.closed, ls.held = true, nil
	for _, l := range held {
		l.quit()
	}
	return held
}

// closeAll revokes them.
func (ls *leases) closeAll() {
	ctx, cancel := context.WithTimeout(context.Background(), revokePatience)
	defer cancel()
	for _, l := range ls.abandon() {
		l.revoke(ctx)
	}
}

func (l *lease) ID() store.LeaseID     { return l.id }
func (l *lease) Done() <-chan struct{} { return l.done }
func (l *lease) quit()                 { l.once.Do(func() { close(l.stop) }) }

func (l *lease) Close(ctx context.Context) error {
	l.quit()
	select {
	case <-l.d.closed:
		return nil // the opener has revoked it
	default:
		return l.revoke(ctx)
	}
}

func (l *lease) revoke(ctx context.Context) error {
	_, err := l.d.writer.do(ctx, func(t *turn) (int64, error) { return 0, t.endLease(l.id) })
	return err
}

// keep refreshes the lease until it is closed, is lost, or has not been
// refreshed for its TTL. The time counts from before each refresh, so that Done
// is closed before others may expire it.
func (l *lease) keep(refreshed time.Time) {
	defer close(l.done)
	wait := time.NewTimer(l.ttl / 3)
	defer wait.Stop()
	for {
		select {
		case <-wait.C:
		case <-l.stop:
			return
		case <-l.d.gone:
			return
		}
		now := time.Now()
		lives, err := l.refresh(refreshed.Add(l.ttl))
		if err == nil && !lives {
			return
		}
		if err == nil {
			refreshed = now
		} else if time.Since(refreshed) >= l.ttl {
			return
		}
		wait.Reset(l.ttl / 3 / retries(err))
	}
}

// retries is into how many parts the interval is cut, so that a refresh which
// was refused is tried again soon.
func retries(err error) time.Duration {
	if err != nil {
		return 5
	}
	return 1
}

func (l *lease) refresh(deadline time.Time) (lives bool, err error) {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	n, err := l.d.writer.do(ctx, func(t *turn) (int64, error) {
		t.changed = true
		return t.c.exec("UPDATE lease SET counter = counter + 1 WHERE id = ?", int64(l.id))
	})
	return n > 0, err
}

// grant is the job that makes a lease. Its result is the id.
func (t *turn) grant(ttl time.Duration, o owner) (id int64, err error) {
	t.changed = true
	_, err = t.c.row(`INSERT INTO lease (ttl_ms, counter, pid, start, pidns, boot)
		VALUES (?, 0, ?, ?, ?, ?) RETURNING id`,
		[]any{ttl.Milliseconds(), o.pid, o.start, o.pidns, o.boot}, &id)
	return id, err
}
