package worker

import (
	"context"
	"errors"
	"sync"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// ownPresence returns this worker's presence.
func (w *worker) ownPresence() record.Presence {
	claimant := w.o.Claimant
	return record.Presence{
		Version: w.o.Version,
		Digests: w.o.digests(),
		// Claimant.Host is the host's machine-id, if it has one. Presence.Host is the host's name.
		Server:  claimant.Host + ":" + claimant.Folder,
		Host:    claimant.Name,
		Package: w.o.Package,
	}
}

// keepPresence publishes the worker's presence under the session of this process. If the session is lost,
// keepPresence writes the presence again under a new session. It also does so if the key is removed, which
// happens if the server is unregistered and registered again.
func (w *worker) keepPresence(ctx context.Context) error {
	defer endSession(ctx, w.process)

	for isRetry := false; ctx.Err() == nil; isRetry = true {
		err := w.publishInSession(ctx, isRetry)
		if ctx.Err() != nil || err == nil || errors.Is(err, keyspace.ErrSessionLost) {
			// If ctx is not done, the session was lost, and the next call follows at once.
			continue
		}
		if err := updater.AwaitRetry(ctx, err); err != nil {
			return err
		}
	}

	return nil
}

// publishInSession keeps the presence published until the session ends. isRetry says that a previous call has
// returned.
func (w *worker) publishInSession(ctx context.Context, isRetry bool) error {
	s, err := w.process.Session(ctx)
	if err != nil {
		return err
	}

	// The previous call has ended with its session or with an error. The store may have been away, and the
	// feed may have missed changes.
	if isRetry {
		w.noteOutageEnd()
		w.feed.Invalidate()
	}

	return w.keepPublished(ctx, s)
}

// endSession closes the session, even after ctx is done. It gives up after updater.ShutdownTimeout.
func endSession(ctx context.Context, s *keyspace.SharedSession) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updater.ShutdownTimeout)
	defer cancel()
	// A session that cannot be closed expires.
	_ = s.Close(ctx)
}

// keepPublished writes this server's presence, and writes it again whenever it is removed or replaced. It
// returns nil when the session ends or ctx is done.
func (w *worker) keepPublished(ctx context.Context, s *keyspace.Session) error {
	// From here on, ctx also ends with the session.
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		select {
		case <-s.Done():
		case <-ctx.Done():
		}
	})
	// The goroutine ends only with ctx. Deferred calls run in reverse order, so cancel runs before Wait.
	defer watching.Wait()
	defer cancel()

	for {
		revision, isPublished, err := w.checkPublished(ctx, s)
		switch {
		case err != nil:
			// The error is returned below.
		case isPublished:
			err = w.o.Store.Await(ctx, revision, keyspace.Exactly(keys.Presence(w.o.LRN)))
		default:
			err = w.publishPresence(ctx, s)
		}

		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// checkPublished reports whether this server's presence is in the store, and the session has written it. It
// also returns the revision at which it read the presence.
func (w *worker) checkPublished(
	ctx context.Context,
	s *keyspace.Session,
) (revision int64, isPublished bool, err error) {
	err = w.o.Store.View(ctx, func(v *keyspace.View) error {
		stored, err := updater.ReadKey[record.Presence](v, keys.Presence(w.o.LRN))
		if err != nil {
			return err
		}

		// The session is announced once it has written the presence.
		isPublished = stored != nil && *stored == w.ownPresence() && w.process.IsAnnounced(s)
		revision, err = v.Revision()
		return err
	})

	return revision, isPublished, err
}

// publishPresence writes this worker's presence under the session, and marks the session as announced, for which
// campaigns wait. The first success also reports that this worker is ready.
func (w *worker) publishPresence(ctx context.Context, s *keyspace.Session) error {
	err := w.claim.Update(ctx, func(tx *keyspace.Tx) error {
		return tx.PutLeased(keys.Presence(w.o.LRN), w.ownPresence(), s)
	})
	if err != nil {
		return err
	}

	w.process.MarkAnnounced(s)
	w.ready.Do(w.o.reportReady)
	return nil
}

// reportReady calls Ready, if it is set.
func (o Options) reportReady() {
	if o.Ready != nil {
		o.Ready()
	}
}

// faultError is an error that other servers have caused.
type faultError struct {
	error
	servers []int // their LRNs
}
