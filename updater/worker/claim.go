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

// claimInterval is how often a worker checks a claim that another host holds, in addition to watching it.
const claimInterval = time.Minute

// takeClaim takes the claim of the LRN. If another host holds the claim, takeClaim alerts operators and waits
// for the claim, since only an operator knows whether that host will come back. While it waits, it publishes
// this host as a twin of the other host.
func takeClaim(ctx context.Context, o Options) (*keyspace.Claim, error) {
	// This session is only for publishTwin. The worker announces itself later, in a different session.
	const announces = false
	session := keyspace.NewSharedSession(o.Store, announces)
	defer endSession(ctx, session)
	began := time.Now().UTC()

	alerted := false
	for {
		claim, err := o.tryClaim(ctx)
		if err == nil {
			return claim, nil
		}
		if !errors.Is(err, keyspace.ErrClaimed) {
			return claim, err
		}

		if !alerted {
			if err := o.alertTwin(ctx, err); err != nil {
				return nil, err
			}
			alerted = true
		}
		if err := o.publishTwin(ctx, session, began, err); err != nil {
			return nil, err
		}
		o.awaitClaim(ctx, keys.Claim(o.LRN))
	}
}

// tryClaim takes the claim of the LRN, and retries while the store cannot be reached. It returns
// keyspace.ErrClaimed as [keyspace.Space.TakeClaim] does, for example if another host holds the claim.
func (o Options) tryClaim(ctx context.Context) (claim *keyspace.Claim, err error) {
	target := keyspace.ClaimTarget{Key: keys.Claim(o.LRN), Presence: keys.Presence(o.LRN)}
	err = retryStore(ctx, func() error {
		claim, err = o.Store.TakeClaim(ctx, target, o.Claimant)
		return err
	})
	return claim, err
}

// publishTwin records that this worker waits for the claim. The record ends with the session. began is when
// the wait began, and why is the reason.
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

// awaitClaim waits until the claim under the key changes, or for at most claimInterval. After an error of
// the store, it waits for at most updater.RetryInterval more.
func (o Options) awaitClaim(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, claimInterval)
	defer cancel()

	revision, err := keyspace.Read(ctx, o.Store, (*keyspace.View).Revision)
	if err == nil {
		err = o.Store.Await(ctx, revision, keyspace.Exactly(key))
	}
	if err != nil {
		// If the wait has timed out, Sleep returns at once.
		_ = backoff.Sleep(ctx, updater.RetryInterval)
	}
}

// alertTwin writes an alert that two hosts claim this server's LRN. There is one alert for each pair of hosts,
// since the alert's ID contains the hashes of both. alertTwin also reports that this worker is ready, since it
// has started, and the wait for its claim can be long.
func (o Options) alertTwin(ctx context.Context, why error) error {
	message := fmt.Sprintf("two hosts claim LRN %d; %s, which started later, stays idle: %v; if the other host is gone for good: neco bootserver remove %d; neco bootserver add %d",
		o.LRN, cmp.Or(o.Claimant.Name, "the second one"), why, o.LRN, o.LRN)
	slog.Error(message)
	o.reportReady()

	return retryStore(ctx, func() error {
		return o.Store.Update(ctx, func(tx *keyspace.Tx) error {
			holder, _, err := tx.ClaimHolder(keys.Claim(o.LRN))
			if err != nil {
				return err
			}

			a := record.Alert{
				ID:      fmt.Sprintf("twin-%d-%s-%s", o.LRN, hashHolder(holder), hashHolder(o.Claimant.Holder)),
				Kind:    record.AlertTwin,
				Servers: []int{o.LRN},
				Message: message,
				At:      time.Now().UTC(),
			}

			return tx.Put(keys.Alert(a.ID), a)
		})
	})
}

// hashHolder returns a short hash that identifies the holder's host and directory.
func hashHolder(h keyspace.Holder) string { return osutil.Digest([]byte(h.Host + ":" + h.Folder))[:12] }
