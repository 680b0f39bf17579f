package state

import (
	"context"
	"io"

	"bijou/state/keyspace"
)

// Viewer gives views of the environment. It is implemented by State and Rehearsal.
type Viewer interface {
	View(ctx context.Context, f func(v *View) error) error
}

// Writer makes the changes of a command. It is implemented by State, which commits them, and by Rehearsal,
// which only returns the results and errors that the State would return.
type Writer interface {
	Viewer
	Update(ctx context.Context, f func(tx *Tx) error) error
	AddUnits(ctx context.Context, service string, n int, at ...Placement) ([]Unit, error)
	PutBlob(ctx context.Context, r io.Reader) (sum string, size int64, err error)
	PutFile(ctx context.Context, r io.ReaderAt) (sum string, size int64, err error)
}

// Rehearsal is a dry run of changes to a State. Its later views and updates see its earlier updates, but all
// changes are dropped at the end. Only one goroutine may use it, and only until the function that received it
// returns.
type Rehearsal struct{ tx *Tx }

// Rehearse calls f with a rehearsal of this state. It commits nothing and stores no blobs. It returns f's
// error, or an error if the environment cannot be changed.
func (s *State) Rehearse(ctx context.Context, f func(r *Rehearsal) error) error {
	return s.space.DryRun(ctx, func(keys *keyspace.Tx) error { return f(&Rehearsal{newTx(keys)}) })
}

// View calls f with a view of the environment that includes the rehearsal's writes so far.
func (r *Rehearsal) View(_ context.Context, f func(v *View) error) error { return f(r.tx.View) }

// Update runs f. If f fails, it drops f's writes immediately. Otherwise they are dropped at the end of the
// rehearsal.
func (r *Rehearsal) Update(_ context.Context, f func(tx *Tx) error) error {
	return r.tx.keys.Attempt(func(keys *keyspace.Tx) error { return f(newTx(keys)) })
}

// AddUnits does what [State.AddUnits] does.
func (r *Rehearsal) AddUnits(ctx context.Context, service string, n int, at ...Placement) ([]Unit, error) {
	return addUnits(ctx, r.Update, service, n, at)
}

// PutBlob returns the result that [State.PutBlob] would return. Later updates of the rehearsal can refer to
// the blob.
func (r *Rehearsal) PutBlob(_ context.Context, content io.Reader) (sum string, size int64, err error) {
	return r.tx.keys.AssumeBlob(content)
}

// AssumeBlob makes the rehearsal act as if it had a blob whose SHA-256 sum is sum.
func (r *Rehearsal) AssumeBlob(sum string) { r.tx.keys.AssumeSum(sum) }

// PutFile returns the result that [State.PutFile] would return. Later updates of the rehearsal can refer to
// the blob.
func (r *Rehearsal) PutFile(_ context.Context, content io.ReaderAt) (sum string, size int64, err error) {
	return r.tx.keys.AssumeFile(content)
}
