package keyspace

import (
	"context"
	"io"
	"maps"
)

// DryRun calls f as Update does, and drops its writes. It returns the error that Update would return
// without others' writes: that of f, or of a guard. It may run f again, as Update does.
func (s *Space) DryRun(ctx context.Context, f func(tx *Tx) error) error {
	return s.rerun(ctx, func() error {
		return s.runOnce(ctx, f, func(b *txBuffer, read int64) error {
			if len(b.buildTxn(read).Ops) == 0 {
				return b.forget(nil)
			}
			if err := b.forget(nil); err != nil {
				return err
			}

			return s.explainConflict(ctx, b)
		})
	})
}

// Attempt calls f with the transaction, and takes back f's writes if f fails. In a DryRun of several
// updates each of them is an Attempt.
func (tx *Tx) Attempt(f func(tx *Tx) error) error {
	writes := maps.Clone(tx.buffer.writes)
	blobs := maps.Clone(tx.buffer.blobs)
	err := f(tx)
	if err != nil {
		tx.buffer.writes = writes
		tx.buffer.blobs = blobs
	}
	return err
}

// AssumeBlob does what Space.PutBlob does within a DryRun. It stores nothing, but ReferToBlob finds the blob.
func (tx *Tx) AssumeBlob(r io.Reader) (sum string, size int64, err error) {
	data, sum, err := readBlob(r)
	if err != nil {
		return "", 0, err
	}
	tx.buffer.assumed[sum] = true
	return sum, int64(len(data)), nil
}

// AssumeSum does what AssumeBlob does, for a blob of which only the sum is known.
func (tx *Tx) AssumeSum(sum string) { tx.buffer.assumed[sum] = true }

// AssumeFile does what Space.PutFile does within a DryRun. It stores nothing, but ReferToBlob finds the file.
func (tx *Tx) AssumeFile(r io.ReaderAt) (sum string, size int64, err error) {
	if sum, size, err = sumFile(r); err != nil {
		return "", 0, err
	}
	tx.buffer.assumed[sum] = true
	return sum, size, nil
}
