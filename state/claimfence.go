package state

import "errors"

// errClaimChanged: somebody has written the claim since the update began.
var errClaimChanged = errors.New("the claim has changed")

func (b *txBuffer) checkFence(v *View) error {
	if b.fence.Key == "" {
		return nil
	}
	kv, _, err := v.snap.Get(v.ctx, b.fence.Key)
	if err == nil && kv.Revision != b.fence.Revision {
		return errClaimChanged
	}
	return err
}
