package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/activity"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// runLeaderOnce delivers a component's contents, or waits until another server has delivered them. The
// servers elect a leader, so that only one of them delivers the contents. If the recorded delivery has failed,
// runLeaderOnce returns a faultError with the server that has failed.
func (w *worker) runLeaderOnce(ctx context.Context, c release.Component, r record.Request) error {
	var lead *keyspace.Leadership
	defer func() { resignLeadership(ctx, lead) }()
	doing := activity.Begin(ctx, "uploads the contents of %s", c.Name)
	defer doing.End()

	for {
		d := OnceSnapshot{
			Version: r.Version,
			Plan:    w.snapshot.Digests.Plan,
			Leads:   lead != nil && !lead.HasEnded(),
		}

		revision, err := w.readContents(ctx, c, &d)
		if err != nil {
			return err
		}

		switch NextOnce(d) {
		case MoveDone:
			return nil
		case MoveAbort:
			uploader := d.Contents.Server
			err := fmt.Errorf("server %d has failed to upload the contents: %s", uploader, d.Contents.Message)
			return faultError{error: err, servers: []int{uploader}}
		case MoveGo:
			err = w.deliverContents(ctx, c, r, lead)
			if errors.Is(err, keyspace.ErrSessionLost) {
				// Another server may deliver the contents now, even if this session seems to live. The next round
				// reads the record again, and campaigns again.
				resignLeadership(ctx, lead)
				lead = nil
				err = nil
			}
		case MoveTake:
			// lead is nil, or has ended with its session. Resign then only cleans up.
			resignLeadership(ctx, lead)
			doing.Wait(record.WaitContents, nil, "waits for the server that uploads the contents of "+c.Name)
			lead, err = w.campaign(ctx, c, revision)
			doing.Say("uploads the contents of %s", c.Name)
		}
		if err != nil {
			return err
		}
	}
}

// resignLeadership resigns, so that the next worker is elected at once, even if ctx is done.
func resignLeadership(ctx context.Context, l *keyspace.Leadership) {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updater.ShutdownTimeout)
	defer cancel()
	// A leadership that cannot be resigned ends with the session.
	_ = l.Resign(ctx)
}

// readContents reads the record of the component's contents into d, and returns the revision at which it
// was read.
func (w *worker) readContents(ctx context.Context, c release.Component, d *OnceSnapshot) (revision int64, err error) {
	err = retryStore(ctx, func() error {
		return w.o.Store.View(ctx, func(v *keyspace.View) (err error) {
			if d.Contents, err = updater.ReadKey[record.Contents](v, keys.Contents(c.Contents.Key)); err != nil {
				return err
			}
			revision, err = v.Revision()
			return err
		})
	})

	return revision, err
}

// deliverContents delivers a component's contents, and writes the result unless the task was cancelled. It
// returns the reason if the delivery has failed, and errStale if the request has changed. It returns
// [keyspace.ErrSessionLost] if this worker no longer leads, whether the delivery has failed or not.
func (w *worker) deliverContents(
	ctx context.Context,
	c release.Component,
	r record.Request,
	lead *keyspace.Leadership,
) error {
	failure := w.o.Server.DeliverContents(ctx, c)
	if ctx.Err() != nil {
		return ctx.Err()
	}

	result := record.Contents{
		Version: r.Version,
		Plan:    w.snapshot.Digests.Plan,
		Success: failure == nil,
		Server:  w.o.LRN,
	}

	if failure != nil {
		result.Message = record.Shorten(failure.Error(), record.MaxMessage)
	}

	err := retryStore(ctx, func() error {
		return lead.Update(ctx, func(tx *keyspace.Tx) error {
			if err := checkUnchanged(tx.View, r); err != nil {
				return err
			}
			return tx.Put(keys.Contents(c.Contents.Key), result)
		})
	})
	if errors.Is(err, keyspace.ErrSessionLost) {
		return err // whether the delivery has failed is for the next leader to find out
	}

	return errors.Join(failure, err)
}

// campaign blocks until this worker is elected to deliver the contents. It returns a nil leadership and a nil
// error if the caller must read the record of the contents again: if the record has changed since the
// revision or cannot be watched, if the session was lost, or, after a wait, if the campaign failed for a
// reason that a retry can remove.
func (w *worker) campaign(ctx context.Context, c release.Component, revision int64) (*keyspace.Leadership, error) {
	s, err := w.process.AnnouncedSession(ctx)
	if err != nil {
		return nil, updater.AwaitRetry(ctx, err)
	}

	race, cancel := context.WithCancel(ctx)
	defer cancel()
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		// Even an error of Await ends the campaign. The caller then reads the record again.
		_ = w.o.Store.Await(race, revision, keyspace.Exactly(keys.Contents(c.Contents.Key)))
	})

	lead, err := s.Campaign(race, keys.WorkerLeader(c.Name), keyspace.Candidate{})
	// This ends the watch, which a won campaign no longer needs.
	cancel()
	watching.Wait()

	switch {
	case err == nil:
		return lead, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, keyspace.ErrSessionLost), errors.Is(err, context.Canceled):
		return nil, nil
	}

	return nil, updater.AwaitRetry(ctx, err)
}

// OnceSnapshot is the state on which a worker's next move depends, in a step that one server runs on behalf
// of all.
type OnceSnapshot struct {
	Version  string           // the version of the request
	Plan     string           // the digest of the worker's plan
	Contents *record.Contents // the recorded result, or nil
	Leads    bool             // this worker was elected to deliver the contents
}

// NextOnce decides on the next move in a step that one server runs on behalf of all. MoveTake means to
// campaign, and MoveGo to deliver the contents.
func NextOnce(d OnceSnapshot) Move {
	// A result of another version or plan does not count.
	hasResult := d.Contents != nil && release.Same(d.Contents.Version, d.Version) &&
		!record.Differ(d.Contents.Plan, d.Plan)

	switch {
	case hasResult && d.Contents.Success:
		return MoveDone
	case hasResult:
		return MoveAbort
	case d.Leads:
		return MoveGo
	}

	return MoveTake
}
