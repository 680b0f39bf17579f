package worker

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// presence shows others that the worker lives, and its version. The key is bound to the
// process's session, and is written again when that is lost, or when the key was removed
// because the server was unregistered and registered again.
type presence struct {
	o             Options
	claim         *keyspace.Claim
	process       *keyspace.SharedSession[*keyspace.Session]
	storeCameBack func()
	ready         sync.Once
}

func (p *presence) ownRecord() record.Presence {
	by := p.o.Claimant
	return record.Presence{Version: p.o.Version, Digests: p.o.digests(), Server: by.Host + ":" + by.Folder, Host: by.Name}
}

func (p *presence) run(ctx context.Context) error {
	defer p.close(ctx)
	for back := false; ctx.Err() == nil; back = true {
		s, err := p.process.Session(ctx)
		if err == nil {
			if back {
				p.storeCameBack() // a session that was lost shows that the store was away
			}
			err = p.keepPublished(ctx, s)
		}
		if ctx.Err() != nil || err == nil || errors.Is(err, keyspace.ErrSessionLost) {
			continue
		}
		if err := updater.AwaitRetry(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

func (p *presence) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updater.ShutdownTimeout)
	defer cancel()
	_ = p.process.Close(ctx)
}

func (p *presence) keepPublished(ctx context.Context, s *keyspace.Session) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		select {
		case <-s.Done():
		case <-ctx.Done():
		}
	})
	defer watching.Wait()
	defer cancel()
	for {
		revision, stands, err := p.checkPublished(ctx, s)
		switch {
		case err != nil:
		case stands:
			err = p.o.Store.Await(ctx, revision, keyspace.Below(keys.Presence(p.o.LRN)))
		default:
			err = p.publish(ctx, s)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (p *presence) checkPublished(ctx context.Context, s *keyspace.Session) (revision int64, stands bool, err error) {
	err = p.o.Store.View(ctx, func(v *keyspace.View) error {
		seen, err := updater.ReadKey[record.Presence](v, keys.Presence(p.o.LRN))
		if err != nil {
			return err
		}
		stands = seen != nil && *seen == p.ownRecord() && p.process.IsAnnounced(s)
		revision, err = v.Revision()
		return err
	})
	return revision, stands, err
}

func (p *presence) publish(ctx context.Context, s *keyspace.Session) error {
	err := p.claim.Update(ctx, func(tx *keyspace.Tx) error {
		return tx.PutLeased(keys.Presence(p.o.LRN), p.ownRecord(), s)
	})
	if err == nil {
		p.process.MarkAnnounced(s)
		p.ready.Do(p.o.reportReady)
	}
	return err
}

func (o Options) reportReady() {
	if o.Ready != nil {
		o.Ready()
	}
}

// How long something takes before a worker reports it as its activity, and how often it
// looks whether that has changed.
const (
	activityDelay    = time.Second
	activityInterval = 5 * time.Second
)

// faultError is an error that other servers are at fault for.
type faultError struct {
	error
	servers []int
}

// publishActivity does nothing about a failure: it is called again soon.
func (w *worker) publishActivity(ctx context.Context) {
	e, j := w.running, w.snapshot.Journal
	if e == nil || w.clock.Now().Before(e.publishAt) {
		return
	}
	e.publishAt = w.clock.Now().Add(activityInterval)
	a, ok := e.log.Current(activityDelay)
	a.Request, a.Attempt, a.Step, a.Since = j.Request, j.Attempt, j.Step, a.Since.UTC().Round(time.Millisecond)
	if !ok || reflect.DeepEqual(a, e.published) {
		return
	}
	written, _ := w.claim.PutIf(ctx, keys.Current, w.requestRevision, keys.Activity(w.o.LRN), a)
	if written {
		e.published = a
	}
}
