package keyspace

import (
	"context"
	"errors"
	"sync"
	"time"

	"bijou/state/backoff"
	"bijou/state/store"
)

// Claim is the right to run a machine's agents, or a boot server's worker. It is
// durable: it outlives outages of the store, sessions and the process, until another
// holder takes it. Its methods may be called from several goroutines.
type Claim struct {
	space    *Space
	target   ClaimTarget
	claimant Claimant
	joining  bool // it is another process's of the same place

	reconcileMu sync.Mutex // held by whoever finds out what has become of the claim

	mu    sync.Mutex
	state claimState
}

type claimState struct {
	epoch    int64
	revision int64 // of the claim's key
	lostErr  error // why it was lost
}

// ClaimTarget names a claim.
type ClaimTarget struct {
	Key      string
	Presence string // the key that its holder puts under its session
	// CheckExists returns ErrNotFound once what is claimed is gone; nil: it never is.
	CheckExists func(v *View) error
}

// claimDoubtTimeout is how long a holder whose process cannot be seen is given to show
// that it lives: a session's time, and some for the store to notice that it has ended.
const claimDoubtTimeout = SessionTTL + 2*time.Second

// TakeClaim makes the claimant the holder of the claim. The previous holder can commit nothing more.
//
// A claimant at the place that holds the claim gets it if the holder's process is gone. If that process
// cannot be seen, TakeClaim waits for as long as a session lasts. It returns ErrClaimed if a different
// place holds the claim, whether a process lives there or not, or if the holder's process lives.
func (s *Space) TakeClaim(ctx context.Context, t ClaimTarget, by Claimant) (*Claim, error) {
	c := &Claim{space: s, target: t, claimant: by}
	return c, c.acquire(ctx)
}

// JoinClaim does what TakeClaim does, for a process beside the holder. It works under the claim of its place,
// whichever process of that place holds the claim.
func (s *Space) JoinClaim(ctx context.Context, t ClaimTarget, by Claimant) (*Claim, error) {
	c := &Claim{space: s, target: t, claimant: by, joining: true}
	return c, c.acquire(ctx)
}

// acquire takes the claim. If nobody can tell whether its holder lives, it gives the holder claimDoubtTimeout
// to show that.
func (c *Claim) acquire(ctx context.Context) error {
	doubt, err := c.acquireOnce(ctx, false)
	if err != nil || !doubt {
		return err
	}
	if err := backoff.Sleep(ctx, claimDoubtTimeout); err != nil {
		return err
	}
	_, err = c.acquireOnce(ctx, true)
	return err
}

// acquireOnce takes the claim, unless doubt is true: nobody can tell yet whether the holder lives. waited
// says that the holder has had its time to show that. It returns ErrClaimed if the claim is refused.
func (c *Claim) acquireOnce(ctx context.Context, waited bool) (doubt bool, err error) {
	by := c.claimant.Holder
	by.Since = time.Now().UTC().Truncate(time.Second)
	if c.joining {
		by.Boot = ""
		by.PIDNamespace = ""
		by.PID = 0
		by.Start = ""
	}

	err = c.space.Update(ctx, func(tx *Tx) error {
		doubt = false
		if check := c.target.CheckExists; check != nil {
			if err := check(tx.View); err != nil {
				return err
			}
		}

		d, _, err := Load[ClaimRecord](tx, c.target.Key)
		if err != nil {
			return err
		}
		if c.joining && d.Holder != nil && d.Holder.SamePlace(by) {
			return nil
		}

		v, why := d.decide(c.claimant)
		if v == claimDoubtful {
			if v, why, err = c.settleDoubt(tx, *d.Holder, waited); err != nil {
				return err
			}
		}
		if v == claimRefused {
			return Refuse(ErrClaimed, "%s", why)
		}
		doubt = v == claimDoubtful
		if doubt {
			return nil
		}

		return tx.Put(c.target.Key, d.nextRecord(&by, c.current().epoch))
	})
	if err != nil || doubt {
		return doubt, err
	}

	return false, c.adoptRevision(ctx)
}

// settleDoubt decides about a holder that cannot be seen from here. After the wait, the holder lives if its
// presence is in the store.
func (c *Claim) settleDoubt(tx *Tx, h Holder, waited bool) (v claimVerdict, why string, err error) {
	if !waited {
		return claimDoubtful, "", nil
	}
	_, lives, err := tx.Get(c.target.Presence)
	if lives {
		return claimRefused, "it is held by " + h.String() + ", which lives, and cannot be seen from here", err
	}

	return claimGranted, "", err
}

// fenceCond returns the condition that the claim has not been written since it was adopted.
func (c *Claim) fenceCond() store.Cond {
	return store.Cond{Key: c.target.Key, Revision: c.current().revision}
}

func (c *Claim) current() claimState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// adoptRevision reads the claim's record, and makes its revision the one that writes are conditional on.
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

// isOwner reports whether this process holds the claim; if it joins, whether its place does.
func (c *Claim) isOwner(d ClaimRecord) bool {
	return d.Holder != nil && d.Holder.SamePlace(c.claimant.Holder) &&
		(c.joining || d.Holder.sameProcess(c.claimant.Holder))
}

// readRecord reads the claim's record, and its entry in the store.
func (c *Claim) readRecord(ctx context.Context) (kv store.KV, d ClaimRecord, err error) {
	err = c.space.View(ctx, func(v *View) (err error) {
		d = ClaimRecord{}
		kv, err = v.GetKV(c.target.Key)
		if err != nil || kv.Revision == 0 {
			return err
		}
		d, err = Decode[ClaimRecord](kv)
		return err
	})

	return kv, d, err
}

// markLost records that the claim was lost, and returns why.
func (c *Claim) markLost(d ClaimRecord) error {
	why := "an operator gave it away"
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
// and writes nothing, once another holder has the claim.
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
		if err := c.reconcile(ctx); err != nil {
			return err
		}
	}
}

// reconcile handles a change of the claim's key. It returns ErrClaimLost if another claimant holds the
// claim. If the claim is gone, or has an earlier epoch, the store was restored to an earlier time, and
// reconcile takes the claim again.
func (c *Claim) reconcile(ctx context.Context) error {
	c.reconcileMu.Lock()
	defer c.reconcileMu.Unlock()
	kv, d, err := c.readRecord(ctx)
	if err != nil {
		return err
	}

	switch {
	case kv.Revision == c.fenceCond().Revision:
		return nil
	case c.isOwner(d):
		return c.adoptRevision(ctx)
	case d.Epoch < c.current().epoch || c.joining:
		err := c.acquire(ctx)
		if errors.Is(err, ErrClaimed) {
			return c.markLost(d)
		}
		return err
	}

	return c.markLost(d)
}

// Watch waits until the claim is lost, and returns the reason, which wraps ErrClaimLost. It returns nil
// once ctx is done, or once the entity that is claimed, or the store, is gone.
func (c *Claim) Watch(ctx context.Context) error {
	for ctx.Err() == nil {
		err := c.awaitChange(ctx)
		if err == nil {
			err = c.reconcile(ctx)
		}

		switch {
		case errors.Is(err, ErrClaimLost):
			return err
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrStoreGone), errors.Is(err, ErrClosed):
			return nil // as others find out, too
		case err != nil:
			_ = backOff(ctx, maxBackOffAttempt)
		}
	}

	return nil
}

// maxBackOffAttempt is the attempt from which on backOff's waits do not grow.
const maxBackOffAttempt = 8

// awaitChange waits until the claim's record is written by anybody.
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
