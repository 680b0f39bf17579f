package state

import (
	"context"
	"errors"
	"sync"
	"time"

	"bijou/state/store"
)

// Claim is the right to run a machine's agents, or a boot server's worker. It is
// durable: it outlives outages of the store, sessions and the process, until another
// holder takes it. Its methods may be called from several goroutines.
type Claim struct {
	at    claimPlace
	by    Claimant
	joins bool // it is another process's of the same place

	renewing sync.Mutex // held by whoever finds out what has become of the claim

	mu       sync.Mutex
	epoch    int64
	revision int64 // of the claim's key
	cause    error // why it was lost
}

// claimPlace is where a claim stands, and the presence of its holder.
type claimPlace struct {
	state    *State
	key      string
	presence string
	// there returns ErrNotFound once what is claimed is gone.
	there func(v *View) error
}

// claimDoubt is how long a holder whose process cannot be seen is given to show that
// it lives: a session's time, and some for the store to notice that it has ended.
const claimDoubt = SessionTTL + 2*time.Second

func (s *State) claimOf(machine string) claimPlace {
	agent := MachineAgent(machine)
	return claimPlace{s, claimKey(agent), presenceKey(agent), func(v *View) error { return v.hasAgent(agent) }}
}

// TakeClaim makes the claimant the one that runs the machine's agents. Whoever held
// the claim before commits nothing more.
//
// It is granted to the place that holds it if the process there is gone, which is waited
// for as long as a session lasts where it cannot be seen. ErrClaimed: it is another
// place's, whether anybody lives there or not, or that process lives. ErrNotFound: there
// is no such machine.
func (s *State) TakeClaim(ctx context.Context, machine string, by Claimant) (*Claim, error) {
	return s.claimOf(machine).take(ctx, by)
}

// JoinClaim is TakeClaim for a process beside the one that runs the machine: it works
// under the claim of its place, whoever of that place holds it.
func (s *State) JoinClaim(ctx context.Context, machine string, by Claimant) (*Claim, error) {
	c := &Claim{at: s.claimOf(machine), by: by, joins: true}
	return c, c.renew(ctx)
}

func (p claimPlace) take(ctx context.Context, by Claimant) (*Claim, error) {
	c := &Claim{at: p, by: by}
	return c, c.renew(ctx)
}

// renew takes or joins the claim.
func (c *Claim) renew(ctx context.Context) error {
	doubt, err := c.attempt(ctx, false)
	if err != nil || !doubt {
		return err
	}
	timer := time.NewTimer(claimDoubt)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	_, err = c.attempt(ctx, true)
	return err
}

// attempt takes the claim unless it is in doubt; waited tells that the holder has had
// its time to show that it lives.
func (c *Claim) attempt(ctx context.Context, waited bool) (doubt bool, err error) {
	by := c.by.Holder
	by.Since = time.Now().UTC().Truncate(time.Second)
	if c.joins {
		by.Boot, by.PIDs, by.PID, by.Start = "", "", 0, ""
	}
	err = c.at.state.Update(ctx, func(tx *Tx) error {
		doubt = false
		if err := c.at.there(tx.View); err != nil {
			return err
		}
		d, _, err := load[claimDoc](tx.View, c.at.key)
		if err != nil {
			return err
		}
		if c.joins && d.Holder != nil && d.Holder.SamePlace(by) {
			return nil
		}
		v, why := d.judge(c.by)
		if v == doubtful {
			if v, why, err = c.settleDoubt(tx, *d.Holder, waited); err != nil {
				return err
			}
		}
		if v == refused {
			return refuse(ErrClaimed, "%s", why)
		}
		if doubt = v == doubtful; doubt {
			return nil
		}
		return tx.put(c.at.key, d.next(&by, c.held()))
	})
	if err != nil || doubt {
		return doubt, err
	}
	return false, c.adopt(ctx)
}

// settleDoubt decides about a holder whose process cannot be seen by its presence.
func (c *Claim) settleDoubt(tx *Tx, h Holder, waited bool) (v verdict, why string, err error) {
	if !waited {
		return doubtful, "", nil
	}
	_, lives, err := tx.get(c.at.presence)
	if lives {
		return refused, "it is held by " + h.String() + ", which cannot be seen from here, and lives", err
	}
	return granted, "", err
}

// fence is the condition that the claim is as it was adopted.
func (c *Claim) fence() store.Cond {
	c.mu.Lock()
	defer c.mu.Unlock()
	return store.Cond{Key: c.at.key, Revision: c.revision}
}

// held is the highest epoch that this claim has had.
func (c *Claim) held() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch
}

// reasonLost is why the claim was lost; nil if it was not.
func (c *Claim) reasonLost() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// adopt notes the revision at which the claim is this one's.
func (c *Claim) adopt(ctx context.Context) error {
	kv, d, err := c.read(ctx)
	if err != nil {
		return err
	}
	if !c.owns(d) {
		return c.lose(d)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch, c.revision = d.Epoch, kv.Revision
	return nil
}

// owns reports whether the claim is this process's, or of its place if it joins that.
func (c *Claim) owns(d claimDoc) bool {
	return d.Holder != nil && d.Holder.SamePlace(c.by.Holder) && (c.joins || d.Holder.sameProcess(c.by.Holder))
}

// read reads the claim; a zero one if there is none.
func (c *Claim) read(ctx context.Context) (kv store.KV, d claimDoc, err error) {
	err = c.at.state.View(ctx, func(v *View) (err error) {
		var ok bool
		d = claimDoc{}
		if kv, ok, err = v.snap.Get(v.ctx, c.at.key); err != nil || !ok {
			return err
		}
		d, err = decode[claimDoc](kv)
		return err
	})
	return kv, d, err
}

// lose notes that the claim is another's.
func (c *Claim) lose(d claimDoc) error {
	why := "it was given away by an operator"
	if d.Holder != nil {
		why = "it was taken by " + d.Holder.String()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = refuse(ErrClaimLost, "the claim was lost: %s", why)
	}
	return c.cause
}

// Update is State.Update, conditional on the claim: ErrClaimLost, and nothing is
// written, once another holder has taken it.
func (c *Claim) Update(ctx context.Context, f func(tx *Tx) error) error {
	for {
		if err := c.reasonLost(); err != nil {
			return err
		}
		fence := c.fence()
		err := c.at.state.Update(ctx, func(tx *Tx) error {
			tx.pending.fence = fence
			return f(tx)
		})
		if !errors.Is(err, errFenced) {
			return err
		}
		if err := c.reconcile(ctx); err != nil {
			return err
		}
	}
}

// As is Update for one agent of the machine: ErrNotFound once its unit, or the machine,
// is gone.
func (c *Claim) As(agent string) Updater {
	return func(ctx context.Context, f func(tx *Tx) error) error {
		return c.Update(ctx, func(tx *Tx) error {
			if err := tx.hasAgent(agent); err != nil {
				return err
			}
			return f(tx)
		})
	}
}

// reconcile finds out what has become of a claim whose key has changed. One that is
// gone, or is of an epoch before, is that of a store which was put back to an earlier
// time: it is taken again.
func (c *Claim) reconcile(ctx context.Context) error {
	c.renewing.Lock()
	defer c.renewing.Unlock()
	kv, d, err := c.read(ctx)
	if err != nil {
		return err
	}
	switch {
	case kv.Revision == c.fence().Revision:
		return nil
	case c.owns(d):
		return c.adopt(ctx)
	case d.Epoch < c.held() || c.joins:
		err := c.renew(ctx)
		if errors.Is(err, ErrClaimed) {
			return c.lose(d)
		}
		return err
	}
	return c.lose(d)
}

// Watch returns why the claim was lost, ErrClaimLost, as soon as it is. It returns nil
// once ctx is done, or what is claimed is gone.
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
		case err != nil && !errors.Is(err, ErrCompacted):
			_ = pause(ctx, longestPause)
		}
	}
	return nil
}

// longestPause is the attempt from which on pauses do not grow.
const longestPause = 8

// awaitChange waits until the claim's key is not as it was adopted.
func (c *Claim) awaitChange(ctx context.Context) error {
	kv, _, err := c.read(ctx)
	if err != nil {
		return err
	}
	fence := c.fence()
	if kv.Revision != fence.Revision {
		return nil
	}
	return c.at.state.awaitChange(ctx, fence.Key, fence.Revision)
}
