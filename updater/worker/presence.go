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
	by := w.o.Claimant
	return record.Presence{
		Version: w.o.Version,
		Digests: w.o.digests(),
		Server:  by.Host + ":" + by.Folder,
		Host:    by.Name,
		Package: w.o.Package,
	}
}

// keepPresence publishes the worker's presence under the session of this process. If the session is lost, it
// writes the presence again under a new session. It also writes it again if the key is removed, which happens
// if the server is unregistered and registered again.
func (w *worker) keepPresence(ctx context.Context) error {
	defer endSession(ctx, w.process)

	for back := false; ctx.Err() == nil; back = true {
		err := w.publishInSession(ctx, back)
		if ctx.Err() != nil || err == nil || errors.Is(err, keyspace.ErrSessionLost) {
			continue
		}
		if err := updater.AwaitRetry(ctx, err); err != nil {
			return err
		}
	}

	return nil
}

// publishInSession keeps the presence published until the session ends. back is set if this is not the first
// session.
func (w *worker) publishInSession(ctx context.Context, back bool) error {
	s, err := w.process.Session(ctx)
	if err != nil {
		return err
	}

	// A lost session shows that the store could not be reached.
	if back {
		w.noteOutageEnd()
		w.feed.Invalidate()
	}

	return w.keepPublished(ctx, s)
}

func endSession(ctx context.Context, s *keyspace.SharedSession) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updater.ShutdownTimeout)
	defer cancel()
	// A session that cannot be closed expires.
	_ = s.Close(ctx)
}

// keepPublished writes this server's presence, and writes it again whenever it is removed, until the
// session ends.
func (w *worker) keepPublished(ctx context.Context, s *keyspace.Session) error {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		select {
		case <-s.Done():
		case <-ctx.Done():
		}
	})
	// The goroutine only ends with ctx, so cancel runs first.
	defer watching.Wait()
	defer cancel()

	for {
		revision, stands, err := w.checkPublished(ctx, s)
		switch {
		case err != nil:
			// The error is returned below.
		case stands:
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

// checkPublished reports whether this server's presence is in the store as the session wrote it. It also
// returns the revision at which it read the presence.
func (w *worker) checkPublished(ctx context.Context, s *keyspace.Session) (revision int64, stands bool, err error) {
	err = w.o.Store.View(ctx, func(v *keyspace.View) error {
		seen, err := updater.ReadKey[record.Presence](v, keys.Presence(w.o.LRN))
		if err != nil {
			return err
		}

		stands = seen != nil && *seen == w.ownPresence() && w.process.IsAnnounced(s)
		revision, err = v.Revision()
		return err
	})

	return revision, stands, err
}

// publishPresence writes this worker's presence under the session.
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
