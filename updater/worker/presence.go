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

// keepPresence publishes that the worker lives, and its version, under a key of the process's session. It
// writes the key again when the session was lost. It also does so when the key was removed, since the
// server was unregistered and registered again.
func (w *worker) keepPresence(ctx context.Context) error {
	defer endSession(ctx, w.process)

	for back := false; ctx.Err() == nil; back = true {
		s, err := w.process.Session(ctx)
		if err == nil {
			if back {
				w.noteOutageEnd() // a session that was lost shows that the store was away
				w.feed.Invalidate()
			}
			err = w.keepPublished(ctx, s)
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

func endSession(ctx context.Context, s *keyspace.SharedSession) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), updater.ShutdownTimeout)
	defer cancel()
	_ = s.Close(ctx) // else it expires
}

// keepPublished writes this server's presence, and writes it again if it is removed, until the session ends.
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
	defer watching.Wait()
	defer cancel()

	for {
		revision, stands, err := w.checkPublished(ctx, s)
		switch {
		case err != nil:
			// Retried below.
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

// checkPublished reports whether this server's presence stands in the store as the session wrote it, and the revision
// at which it was read.
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

// faultError is an error for which other servers are at fault.
type faultError struct {
	error
	servers []int // by their rack numbers (LRN)
}
