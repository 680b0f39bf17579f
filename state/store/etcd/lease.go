package etcd

import (
	"context"
	"errors"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// revokePatience is how long Store.Close tries to revoke the leases. If it
// cannot, they expire.
const revokePatience = 5 * time.Second

// lease is one of etcd's that this opener holds. Its goroutine refreshes it
// three times in a TTL.
type lease struct {
	d    *db
	id   clientv3.LeaseID
	ttl  time.Duration
	done chan struct{}

	once sync.Once
	stop chan struct{}
}

// leases is those of one opener.
type leases struct {
	mu     sync.Mutex
	closed bool
	held   map[*lease]bool
}

// Lease makes a lease of etcd's, which counts in whole seconds and may keep it a
// little longer than ttl; Done keeps to ttl.
func (d *db) Lease(ctx context.Context, ttl time.Duration) (store.Lease, error) {
	if err := d.usable(ctx); err != nil {
		return nil, err
	}
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	ttl = max(ttl, time.Second)
	made := time.Now()
	bound, cancel := d.bind(ctx, commitPatience)
	defer cancel()
	resp, err := d.client.Grant(bound, int64((ttl+time.Second-1)/time.Second))
	if err != nil {
		return nil, d.explain(ctx, err)
	}
	l := &lease{d: d, id: resp.ID, ttl: ttl, done: make(chan struct{}), stop: make(chan struct{})}
	return l, d.leases.add(l, made)
}

// add starts the lease's goroutine, unless the opener is being closed: then
// the lease expires, unused.
func (ls *leases) add(l *lease, made time.Time) error {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return store.ErrClosed
	}
	if ls.held == nil {
		ls.held = map[*lease]bool{}
	}
	ls.held[l] = true
	l.d.tasks.Go(func() {
		l.keep(made)
		ls.forget(l)
	})
	return nil
}

func (ls *leases) forget(l *lease) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.held, l)
}

// abandon ends all goroutines and answers whose leases they were.
func (ls *leases) abandon() []*lease {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	var held []*lease
	for l := range ls.held {
		held = append(held, l)
		l.quit()
	}
	return held
}

// closeAll revokes them.
func (ls *leases) closeAll(d *db) {
	held := ls.abandon()
	if len(held) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(d.ctx, revokePatience)
	defer cancel()
	for _, l := range held {
		_ = l.revoke(ctx) // or it expires
	}
}

func (l *lease) ID() store.LeaseID     { return store.LeaseID(l.id) }
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
	return l.d.retry(ctx, func(ctx context.Context) error {
		_, err := l.d.client.Revoke(ctx, l.id)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) {
			return nil
		}
		return err
	})
}

// keep refreshes the lease until it is closed, is lost, or has not been
// refreshed for its TTL. The time counts from before each refresh, so that Done
// is closed before etcd may expire it.
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
		err := l.refresh(min(l.ttl/4, l.ttl-now.Sub(refreshed)))
		next := l.ttl / 3
		if err == nil {
			refreshed = now
		} else {
			next = l.ttl / 20 // another member may answer
		}
		left := l.ttl - time.Since(refreshed)
		if errors.Is(err, rpctypes.ErrLeaseNotFound) || left <= 0 {
			return
		}
		wait.Reset(min(next, left))
	}
}

// refresh asks one member once.
func (l *lease) refresh(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(l.d.ctx, limit)
	defer cancel()
	stream, err := pb.NewLeaseClient(l.d.client.ActiveConnection()).LeaseKeepAlive(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(l.id)}); err != nil {
		return err
	}
	resp, err := stream.Recv()
	if err == nil && resp.TTL <= 0 {
		return rpctypes.ErrLeaseNotFound
	}
	return err
}
