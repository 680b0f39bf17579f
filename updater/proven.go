package updater

import (
	"context"

	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// Proven reports whether the version that workers have installed in the place of their
// servers' programs has shown that it works. A process that is to go over to it asks
// after it has found it there: the request for which it was installed was there before.
func Proven(ctx context.Context, s *keyspace.Space) (proven bool, err error) {
	err = s.View(ctx, func(v *keyspace.View) error {
		r, err := LoadRequest(v)
		if err != nil {
			return err
		}
		recovery, err := ReadKey[record.Recovery](v, keys.Recovery)
		if err != nil {
			return err
		}
		var gate record.Gate
		if _, err := v.GetJSON(keys.Gate, &gate); err != nil {
			return err
		}
		proven = record.IsProven(r, gate, recovery)
		return nil
	})
	return proven, err
}
