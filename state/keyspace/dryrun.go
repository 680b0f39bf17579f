package keyspace

import (
	"context"
	"io"
	"maps"
)

// DryRun runs f as Update does, but commits nothing. It returns f's error, or the error of a [Guard] that would
// stop the commit.
func (s *Space) DryRun(ctx context.Context, f func(tx *Tx) error) error {
	return s.rerun(ctx, func() error {
		return s.runOnce(ctx, f, func(b *txBuffer, listRevision int64) error {
			return s.checkCommit(ctx, b, listRevision)
		})
	})
}

// checkCommit returns the error of a guard that would stop a commit of the transaction. If the run used values
// from memory, checkCommit drops them and returns errUnconfirmed, since no commit confirms them.
func (s *Space) checkCommit(ctx context.Context, b *txBuffer, listRevision int64) error {
	if b.forgetRecalled() {
		return errUnconfirmed
	}
	// Without changes Update commits nothing, so no guard stops it.
	if len(b.buildTxn(listRevision).Ops) == 0 {
		return nil
	}
	return s.checkGuards(ctx, b)
}

// Attempt calls f, and drops f's writes if f returns an error, which Attempt also returns. A DryRun of
// several updates makes each of them an Attempt.
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

// AssumeBlob replaces Space.PutBlob in a DryRun: it reads r and returns the same results, but stores nothing.
// Afterwards ReferToBlob finds the blob.
func (tx *Tx) AssumeBlob(r io.Reader) (sum string, size int64, err error) {
	data, sum, err := readBlob(r)
	if err != nil {
		return "", 0, err
	}
	tx.buffer.assumed[sum] = true
	return sum, int64(len(data)), nil
}

// AssumeSum makes ReferToBlob find a blob of which only the sum is known, as after AssumeBlob.
func (tx *Tx) AssumeSum(sum string) { tx.buffer.assumed[sum] = true }

// AssumeFile replaces Space.PutFile in a DryRun: it reads r and returns the same results, but stores nothing.
// Afterwards ReferToBlob finds the file.
func (tx *Tx) AssumeFile(r io.ReaderAt) (sum string, size int64, err error) {
	if sum, size, err = sumFile(r); err != nil {
		return "", 0, err
	}
	tx.buffer.assumed[sum] = true
	return sum, size, nil
}
