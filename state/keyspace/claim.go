package keyspace

import (
	"context"
	"errors"
	"sync"
	"time"

	"bijou/state/backoff"
	"bijou/state/store"
)

// Claim is the right to run a machine's agents, or a boot server's worker. A claim is
// durable: it outlives outages of the store, sessions and the process, until another
// holder takes it. Its methods may be called from several goroutines.
type Claim struct {
	space    *Space
	target   ClaimTarget
	claimant Claimant
	joining  bool // whether to share the claim with another process of the same place

	reconcileMu sync.Mutex // held during reconcile

	mu    sync.Mutex
	state claimState
}

// claimState is the state of a claim as this process last saw it.
type claimState struct {
	epoch    int64 // see ClaimRecord
	revision int64 // of the claim's key
	lostErr  error // the reason for the loss; nil while no loss is known
}

// ClaimTarget names a claim.
type ClaimTarget struct {
	Key      string
	Presence string // the key that the holder writes under its session
	// CheckExists returns ErrNotFound if the claimed entity no longer exists. It is nil for an entity that
	// is never removed.
	CheckExists func(v *View) error
}

// claimDoubtTimeout is how long a claimant waits if it cannot see the holder's process. If that process is
// dead, its session expires within this time, and the store removes the session's keys.
const claimDoubtTimeout = SessionTTL + 2*time.Second

// TakeClaim makes the claimant the holder of the claim. Afterwards the previous holder cannot commit
// anything.
//
// A claimant at the holder's place gets the claim if the holder's process has exited. If the claimant cannot
// see that process, TakeClaim waits until the session of a dead process would have expired. TakeClaim returns
// ErrClaimed if the holder's process is still running. It also returns ErrClaimed if a different place holds
// the claim, even if no process there is running.
func (s *Space) TakeClaim(ctx context.Context, t ClaimTarget, by Claimant) (*Claim, error) {
	c := &Claim{space: s, target: t, claimant: by}
	return c, c.acquire(ctx)
}

// JoinClaim does what TakeClaim does, for a process that works beside the holder. Such a process works under
// the claim of its place, no matter which process of that place holds the claim.
func (s *Space) JoinClaim(ctx context.Context, t ClaimTarget, by Claimant) (*Claim, error) {
	c := &Claim{space: s, target: t, claimant: by, joining: true}
	return c, c.acquire(ctx)
}

// acquire takes the claim. If it cannot see whether the holder's process is running, it waits for
// claimDoubtTimeout and tries again. It returns ErrClaimed if the claim is refused.
func (c *Claim) acquire(ctx context.Context) error {
	const waited = true
	doubt, err := c.acquireOnce(ctx, !waited)
	if err != nil {
		return err
	}
	if !doubt {
		return nil
	}
	if err := backoff.Sleep(ctx, claimDoubtTimeout); err != nil {
		return err
	}
	// After the wait there is no doubt: settleDoubt grants or refuses the claim.
	_, err = c.acquireOnce(ctx, waited)
	return err
}

// acquireOnce takes the claim, and makes later writes conditional on it. If it cannot determine whether the
// holder's process is running, it does not take the claim, and returns doubt true. waited is true if
// claimDoubtTimeout has passed. It returns ErrClaimed if the claim is refused, and ErrClaimLost if it is lost
// again before its revision is read.
func (c *Claim) acquireOnce(ctx context.Context, waited bool) (doubt bool, err error) {
	by := c.claimant.Holder
	by.Since = time.Now().UTC().Truncate(time.Second)
	if c.joining {
		// A process that joins works under the claim of its place, whichever process of that place holds it.
		by = by.withoutProcess()
	}

	err = c.space.Update(ctx, func(tx *Tx) (err error) {
		doubt, err = c.writeRecord(tx, by, waited)
		return err
	})
	if err != nil {
		return doubt, err
	}
	if doubt {
		return true, nil
	}

	return false, c.adoptRevision(ctx)
}

// writeRecord decides whether the claimant gets the claim, and records by as its holder. It writes nothing if
// this process joins a claim that its place holds. It also writes nothing if it cannot determine whether the
// present holder's process is running, and then returns doubt true. waited is as in acquireOnce. writeRecord
// returns ErrClaimed if the claim is refused, and the error of CheckExists if the claimed entity is gone.
func (c *Claim) writeRecord(tx *Tx, by Holder, waited bool) (doubt bool, err error) {
	if check := c.target.CheckExists; check != nil {
		if err := check(tx.View); err != nil {
			return false, err
		}
	}

	// An absent record is like a record without a holder.
	d, _, err := Load[ClaimRecord](tx, c.target.Key)
	if err != nil {
		return false, err
	}
	if c.joining && d.Holder != nil && d.Holder.SamePlace(by) {
		return false, nil
	}

	verdict, why := d.decide(c.claimant)
	if verdict == claimDoubtful {
		verdict, why, err = c.settleDoubt(tx, *d.Holder, waited)
		if err != nil {
			return false, err
		}
	}

	switch verdict {
	case claimDoubtful:
		return true, nil
	case claimRefused:
		return false, Refuse(ErrClaimed, "%s", why)
	}

	// The epoch must also be above this process's own, in case the store was restored to an earlier time.
	return false, tx.Put(c.target.Key, d.nextRecord(&by, c.current().epoch))
}

// settleDoubt decides about a holder whose process this host cannot see. Before the wait for
// claimDoubtTimeout, it cannot decide. After the wait, the process counts as running if its presence is in
// the store. why is the reason for a refusal.
func (c *Claim) settleDoubt(tx *Tx, h Holder, waited bool) (v claimVerdict, why string, err error) {
	if !waited {
		return claimDoubtful, "", nil
	}
	_, lives, err := tx.Get(c.target.Presence)
	if err != nil {
		return claimDoubtful, "", err
	}
	if lives {
		return claimRefused, "the claim is held by " + h.String() + ", which is still running on a different host", nil
	}

	return claimGranted, "", nil
}

// fenceCond returns the condition that the claim was not written since adoptRevision has read it.
func (c *Claim) fenceCond() store.Cond {
	return store.Cond{Key: c.target.Key, Revision: c.current().revision}
}

// current returns a copy of the claim's state.
func (c *Claim) current() claimState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// adoptRevision reads the claim's record, and makes later writes conditional on the record's revision. It
// returns ErrClaimLost if this process does not hold the claim.
func (c *Claim) adoptRevision(ctx context.Context) error {
	kv, d, err := c.readRecord(ctx)
	if err != nil {
		return err
	}
	if !c.isOwner(d) {
		return c.markLost(d)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.epoch = d.Epoch
	c.state.revision = kv.Revision
	return nil
}

// isOwner reports whether this process holds the claim. For a process that joins, it reports whether the
// process's place holds the claim.
func (c *Claim) isOwner(d ClaimRecord) bool {
	return d.Holder != nil && d.Holder.SamePlace(c.claimant.Holder) &&
		(c.joining || d.Holder.sameProcess(c.claimant.Holder))
}

// readRecord reads the claim's key, and decodes its record. If the key is absent, kv.Revision is 0, and the record
// is empty.
func (c *Claim) readRecord(ctx context.Context) (kv store.KV, d ClaimRecord, err error) {
	err = c.space.View(ctx, func(v *View) (err error) {
		// The function may run again, so drop the record of an earlier run.
		d = ClaimRecord{}
		kv, err = v.GetKV(c.target.Key)
		if err != nil {
			return err
		}
		if kv.Revision == 0 {
			return nil
		}
		d, err = Decode[ClaimRecord](kv)
		return err
	})

	return kv, d, err
}

// markLost records that the claim was lost, and returns an error that wraps ErrClaimLost and names the holder in
// d, if there is one. If the loss is already recorded, it returns the recorded error.
func (c *Claim) markLost(d ClaimRecord) error {
	why := "an operator has reassigned it"
	if d.Holder != nil {
		why = "it was taken by " + d.Holder.String()
	}
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.state.lostErr == nil {
		c.state.lostErr = Refuse(ErrClaimLost, "the claim was lost: %s", why)
	}
	return c.state.lostErr
}

// Update does what Space.Update does, under the condition that the claim is held. It returns ErrClaimLost,
// and writes nothing, once the claim is lost.
func (c *Claim) Update(ctx context.Context, f func(tx *Tx) error) error {
	for {
		if err := c.current().lostErr; err != nil {
			return err
		}

		fence := c.fenceCond()
		err := c.space.Update(ctx, func(tx *Tx) error {
			tx.buffer.fence = fence
			return f(tx)
		})
		if !errors.Is(err, errClaimChanged) {
			return err
		}
		// Without an error, this process still holds the claim or has taken it again. Run f under its new revision.
		if err := c.reconcile(ctx); err != nil {
			return err
		}
	}
}

// reconcile handles a change of the claim's key. If this process still holds the claim, reconcile makes later
// writes conditional on the new revision. If the claim is gone, or has an earlier epoch, the store was restored to
// an earlier time, and reconcile tries to take the claim again. A process that joins tries this at any epoch.
// If that is refused, and in all other cases, the claim is lost, and reconcile returns ErrClaimLost.
func (c *Claim) reconcile(ctx context.Context) error {
	c.reconcileMu.Lock()
	defer c.reconcileMu.Unlock()
	kv, d, err := c.readRecord(ctx)
	if err != nil {
		return err
	}

	switch {
	case kv.Revision == c.fenceCond().Revision:
		// Another call has already handled the change, or there was none.
		return nil
	case c.isOwner(d):
		return c.adoptRevision(ctx)
	case d.Epoch < c.current().epoch || c.joining:
		// For a process that joins, acquire decides whether its place can have the claim again.
		err := c.acquire(ctx)
		if errors.Is(err, ErrClaimed) {
			return c.markLost(d)
		}
		return err
	}

	return c.markLost(d)
}

// Watch waits until the claim is lost, and returns the reason, which wraps ErrClaimLost. It returns nil once
// ctx is done, or once the claimed entity or the store is gone.
func (c *Claim) Watch(ctx context.Context) error {
	for ctx.Err() == nil {
		err := c.reconcileNext(ctx)
		switch {
		case errors.Is(err, ErrClaimLost):
			return err
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrStoreGone), errors.Is(err, ErrClosed):
			// Other users of the space get the same error.
			return nil
		case err != nil:
			// The store may be back soon, so wait as after many failures. If ctx ends, so does the loop.
			_ = backOff(ctx, maxBackOffAttempt)
		}
	}

	return nil
}

// reconcileNext waits for the next change of the claim's record, and then calls reconcile.
func (c *Claim) reconcileNext(ctx context.Context) error {
	if err := c.awaitChange(ctx); err != nil {
		return err
	}
	return c.reconcile(ctx)
}

// maxBackOffAttempt is the attempt after which backOff's waits no longer grow.
const maxBackOffAttempt = 8

// awaitChange waits until the claim's record has a different revision than adoptRevision has read. Like Await, it
// also returns nil if changes were missed.
func (c *Claim) awaitChange(ctx context.Context) error {
	kv, _, err := c.readRecord(ctx)
	if err != nil {
		return err
	}

	fence := c.fenceCond()
	if kv.Revision != fence.Revision {
		return nil
	}

	return c.space.Await(ctx, fence.Revision, Exactly(fence.Key))
}
