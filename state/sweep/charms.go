package sweep

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// charmGrace is how long a charm's archive is kept after it was last written or referred
// to: whoever has just stored the same one commits its reference in that time.
const charmGrace = keyspace.MinBlobGrace

// Charms removes the charms that no service runs or has run before that, and no unit
// runs or goes over to, if their archives were not touched for a minute before now. It
// removes no more at a time than one transaction bears.
func Charms(ctx context.Context, s *state.State, now time.Time) error {
	var sums map[string]bool
	err := s.Update(ctx, func(tx *state.Tx) error {
		sums = map[string]bool{}
		unused, err := unusedCharms(tx, now.Add(-charmGrace))
		for _, c := range unused[:min(len(unused), keyspace.MaxRemovedKeys)] {
			tx.Keys().Remove(keys.Charm(c.URL.String()))
			sums[c.SHA256] = true
		}
		return err
	})
	if err != nil || len(sums) == 0 {
		return err
	}
	return sweepBlobs(ctx, s, now.Add(-charmGrace), sums)
}

// unusedCharms makes the commit conditional on what services run: units go over to
// nothing else.
func unusedCharms(tx *state.Tx, before time.Time) (unused []state.Charm, err error) {
	services, err := tx.Keys().List(keys.Services)
	units, uerr := tx.Keys().ListUnguarded(keys.Units)
	uniters, werr := tx.Keys().ListUnguarded(keys.Uniters)
	charms, cerr := tx.Charms()
	used := map[string]bool{}
	err = errors.Join(err, uerr, werr, cerr, addUsedCharms(slices.Concat(services, units, uniters), used))
	for _, c := range charms {
		head, herr := tx.Keys().BlobHead(c.SHA256)
		err = errors.Join(err, herr)
		if !used[c.URL.String()] && head.Touched.Before(before) {
			unused = append(unused, c)
		}
	}
	if err != nil {
		return nil, err
	}
	return unused, nil
}

// addUsedCharms adds those that services, their upgrade marks, units and agents name.
func addUsedCharms(kvs []keyspace.KeyValue, used map[string]bool) error {
	for _, kv := range kvs {
		depth := strings.Count(kv.Key, "/")
		isService, isUnit := depth == 1, depth == 2 && strings.HasPrefix(kv.Key, keys.Units)
		if !isService && !isUnit && !strings.HasSuffix(kv.Key, "/upgrade") && !strings.HasSuffix(kv.Key, "/workflow") {
			continue
		}
		record, err := keyspace.Decode[struct{ Charm, Before, Deploying string }](kv)
		if err != nil {
			return err
		}
		used[record.Charm], used[record.Before], used[record.Deploying] = true, true, true
	}
	return nil
}
