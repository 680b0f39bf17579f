package state

import (
	"context"

	"bijou/state/store"
)

// KeyClaim is a Claim over a Keyspace: the right to work as one boot server.
type KeyClaim struct {
	keys  *Keyspace
	claim *Claim
}

// TakeClaim makes the claimant the holder of the claim at the key, as State.TakeClaim
// does, where presence is the key that its holder puts under its session.
func (k *Keyspace) TakeClaim(ctx context.Context, key, presence string, by Claimant) (*KeyClaim, error) {
	at := claimTarget{k.state, k.root + key, k.root + presence, func(*View) error { return nil }}
	c, err := at.takeClaim(ctx, by)
	if err != nil {
		return nil, err
	}
	return &KeyClaim{k, c}, nil
}

// ClaimHolder returns who holds the claim at the key, or held it last; ok is false if
// nobody does.
func (v *KeyView) ClaimHolder(key string) (h Holder, ok bool, err error) {
	var d claimRecord
	if _, err := v.Get(key, &d); err != nil || d.Holder == nil {
		return Holder{}, false, err
	}
	return *d.Holder, true, nil
}

// Watch is Claim.Watch.
func (c *KeyClaim) Watch(ctx context.Context) error { return c.claim.Watch(ctx) }

// Update is Keyspace.Update, conditional on the claim: ErrClaimLost.
func (c *KeyClaim) Update(ctx context.Context, f func(tx *KeyTx) error) error {
	return c.claim.Update(ctx, c.keys.adaptTx(f))
}

// PutIf is Keyspace.PutIf, conditional on the claim, too: Update tells if the claim was
// the condition that failed.
func (c *KeyClaim) PutIf(ctx context.Context, guard string, revision int64, key string, doc any) (written bool, err error) {
	at, err := c.keys.putIf(ctx, []store.Cond{c.claim.fenceCond(), {Key: c.keys.root + guard, Revision: revision}}, key, doc)
	return at != 0, err
}
