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
func Proven(ctx context.Context, s *keyspace.Space) (bool, error) {
	return keyspace.Read(ctx, s, func(v *keyspace.View) (bool, error) {
		r, err := LoadRequest(v)
		if err != nil {
			return false, err
		}
		recovery, err := ReadKey[record.Recovery](v, keys.Recovery)
		if err != nil {
			return false, err
		}
		gate, _, err := keyspace.Load[record.Gate](v, keys.Gate)
		return err == nil && record.IsProven(r, gate, recovery), err
	})
}
