package state

import (
	"context"
	"io"

	"bijou/state/keyspace"
)

// Viewer shows entities as they are at one revision. A State does, and a Rehearsal of one.
type Viewer interface {
	View(ctx context.Context, f func(v *View) error) error
}

// Writer takes all that a command writes. A State commits it, and a Rehearsal of one only says what the State
// would say.
type Writer interface {
	Viewer
	Update(ctx context.Context, f func(tx *Tx) error) error
	AddUnits(ctx context.Context, service string, n int, at ...Placement) ([]Unit, error)
	PutBlob(ctx context.Context, r io.Reader) (sum string, size int64, err error)
	PutFile(ctx context.Context, r io.ReaderAt) (sum string, size int64, err error)
}

// Rehearsal is a State whose updates are made, seen by what comes after them, and dropped at the end. It
// is for one goroutine, and must not outlive the call that it was handed to.
type Rehearsal struct{ tx *Tx }

// Rehearse calls f with a rehearsal of this state. Nothing is committed and no blob is stored. It returns
// the error of f, or why nothing may be written to the environment.
func (s *State) Rehearse(ctx context.Context, f func(r *Rehearsal) error) error {
	return s.space.DryRun(ctx, func(keys *keyspace.Tx) error { return f(&Rehearsal{newTx(keys)}) })
}

// View calls f with the present environment, changed by all that the rehearsal has written so far.
func (r *Rehearsal) View(_ context.Context, f func(v *View) error) error { return f(r.tx.View) }

// Update runs f. It drops f's writes at once if f fails, and otherwise with the rehearsal.
func (r *Rehearsal) Update(_ context.Context, f func(tx *Tx) error) error {
	return r.tx.keys.Attempt(func(keys *keyspace.Tx) error { return f(newTx(keys)) })
}

// AddUnits is State.AddUnits.
func (r *Rehearsal) AddUnits(ctx context.Context, service string, n int, at ...Placement) ([]Unit, error) {
	return addUnits(ctx, r.Update, service, n, at)
}

// PutBlob returns the result that State.PutBlob would return. From then on the rehearsal has the blob.
func (r *Rehearsal) PutBlob(_ context.Context, content io.Reader) (sum string, size int64, err error) {
	return r.tx.keys.AssumeBlob(content)
}

// AssumeBlob has a blob be there in this rehearsal, of which only the sum is known.
func (r *Rehearsal) AssumeBlob(sum string) { r.tx.keys.AssumeSum(sum) }

// PutFile returns the result that State.PutFile would return. From then on the rehearsal has the blob.
func (r *Rehearsal) PutFile(_ context.Context, content io.ReaderAt) (sum string, size int64, err error) {
	return r.tx.keys.AssumeFile(content)
}
