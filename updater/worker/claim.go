package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bijou/state/backoff"
	"bijou/state/keyspace"
	"bijou/state/osutil"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// claimInterval is how often a worker whose LRN another server has looks at the claim,
// besides being told.
const claimInterval = time.Minute

// takeClaim takes the claim of the LRN. It blocks while a different server holds it, since only an operator
// knows whether that server will come back.
func takeClaim(ctx context.Context, o Options) (claim *keyspace.Claim, err error) {
	key := keys.Claim(o.LRN)
	session := keyspace.NewSharedSession(o.Store, false)
	defer endSession(ctx, session)
	began := time.Now().UTC()

	for said := false; ; {
		err := retryStore(ctx, func() (err error) {
			claim, err = o.Store.TakeClaim(ctx,
				keyspace.ClaimTarget{Key: key, Presence: keys.Presence(o.LRN)}, o.Claimant)
			return err
		})
		if !errors.Is(err, keyspace.ErrClaimed) {
			return claim, err
		}

		if !said {
			if err := o.alertTwin(ctx, err); err != nil {
				return nil, err
			}
			said = true
		}
		if err := o.publishTwin(ctx, session, began, err); err != nil {
			return nil, err
		}
		o.awaitClaim(ctx, key)
	}
}

// publishTwin shows others that this worker waits for the claim, as long as it does.
func (o Options) publishTwin(ctx context.Context, session *keyspace.SharedSession, began time.Time, why error) error {
	t := record.Twin{
		Host:   o.Claimant.Name,
		Folder: o.Claimant.Folder,
		Why:    record.Shorten(why.Error(), record.MaxReason),
		At:     began,
	}

	return retryStore(ctx, func() error {
		s, err := session.Session(ctx)
		if err != nil {
			return err
		}
		return o.Store.Update(ctx, func(tx *keyspace.Tx) error { return tx.PutLeased(keys.Twin(o.LRN), t, s) })
	})
}

// awaitClaim waits until the claim's key has changed, at most for claimInterval.
func (o Options) awaitClaim(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, claimInterval)
	defer cancel()

	revision, err := keyspace.Read(ctx, o.Store, (*keyspace.View).Revision)
	if err == nil {
		err = o.Store.Await(ctx, revision, keyspace.Exactly(key))
	}
	if err != nil {
		_ = backoff.Sleep(ctx, updater.RetryInterval)
	}
}

// alertTwin writes an alert about a host that uses this server's LRN, once for each pair of hosts: their
// names make the alert's ID.
func (o Options) alertTwin(ctx context.Context, why error) error {
	message := fmt.Sprintf("two servers go by LRN %d: %s, which came later, does not work: %v; if the other one is gone for good: neco bootserver remove %d; neco bootserver add %d",
		o.LRN, cmp.Or(o.Claimant.Name, "another"), why, o.LRN, o.LRN)
	slog.Error(message)
	o.reportReady()

	return retryStore(ctx, func() error {
		return o.Store.Update(ctx, func(tx *keyspace.Tx) error {
			h, _, err := tx.ClaimHolder(keys.Claim(o.LRN))
			if err != nil {
				return err
			}

			a := record.Alert{
				ID:      fmt.Sprintf("twin-%d-%s-%s", o.LRN, hashHolder(h), hashHolder(o.Claimant.Holder)),
				Kind:    record.AlertTwin,
				Servers: []int{o.LRN},
				Message: message,
				At:      time.Now().UTC(),
			}

			return tx.Put(keys.Alert(a.ID), a)
		})
	})
}

func hashHolder(h keyspace.Holder) string { return osutil.Digest([]byte(h.Host + ":" + h.Folder))[:12] }
