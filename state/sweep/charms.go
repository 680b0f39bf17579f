package sweep

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// charmGrace is how long a charm's archive is kept after it was last written or referred
// to: whoever has just stored the same one commits its reference in that time.
const charmGrace = keyspace.MinBlobGrace

// Charms removes unused charms, as many at once as one transaction can remove. A charm is used if a service
// runs it, has run it before or keeps it to go back to, or if a unit runs it or goes over to it. Charms
// whose archives were touched within a minute before now stay as well.
func Charms(ctx context.Context, s *state.State, now time.Time) error {
	var sums map[string]bool
	err := s.Update(ctx, func(tx *state.Tx) error {
		sums = map[string]bool{}
		unused, err := unusedCharms(tx, now.Add(-charmGrace))
		if err != nil {
			return err
		}

		for _, c := range unused[:min(len(unused), keyspace.MaxRemovedKeys)] {
			tx.Keys().Remove(keys.Charm(c.URL.String()))
			sums[c.SHA256] = true
		}

		return nil
	})
	if err != nil || len(sums) == 0 {
		return err
	}

	return sweepBlobs(ctx, s, now.Add(-charmGrace), sums)
}

// unusedCharms lists the charms that nothing uses, and whose archives were last touched before the time. It
// makes the commit conditional on the services' charms, since units change to no other charm.
func unusedCharms(tx *state.Tx, before time.Time) (unused []state.Charm, err error) {
	services, err := tx.Keys().List(keys.Services)
	units, uerr := tx.Keys().ListUnguarded(keys.Units)
	uniters, werr := tx.Keys().ListUnguarded(keys.Uniters)
	charms, cerr := tx.Charms()
	if err := errors.Join(err, uerr, werr, cerr); err != nil {
		return nil, err
	}

	used := map[string]bool{}
	if err := addUsedCharms(tx.View, slices.Concat(services, units, uniters), used); err != nil {
		return nil, err
	}

	for _, c := range charms {
		head, err := tx.Keys().BlobHead(c.SHA256)
		if err != nil {
			return nil, err
		}

		if !used[c.URL.String()] && head.Touched.Before(before) {
			unused = append(unused, c)
		}
	}

	return unused, nil
}

// charmNames are the charms that any of these records names: that rule alone says which archives stay.
type charmNames struct {
	Charm     string // of a service, an upgrade mark, a unit, a workflow
	Before    string // of an upgrade mark
	Deploying string // of a workflow
	Kept      []struct{ Charm string }
}

// addUsedCharms adds the charms that services, their upgrade marks, units and agents name. A damaged record of a
// service is an error, since its charm would be removed. Damaged records that agents write are passed over.
func addUsedCharms(v *state.View, kvs []keyspace.KeyValue, used map[string]bool) error {
	for _, kv := range kvs {
		depth := strings.Count(kv.Key, "/")
		isService := depth == 1
		isUnit := depth == 2 && strings.HasPrefix(kv.Key, keys.Units)
		if !isService && !isUnit && !strings.HasSuffix(kv.Key, "/upgrade") &&
			!strings.HasSuffix(kv.Key, "/workflow") {
			continue
		}

		record, err := keyspace.Decode[charmNames](kv)
		if !strings.HasPrefix(kv.Key, keys.Services) && v.Keys().Skips(err) {
			continue
		}
		if err != nil {
			return err
		}

		used[record.Charm] = true
		used[record.Before] = true
		used[record.Deploying] = true
		for _, kept := range record.Kept {
			used[kept.Charm] = true
		}
	}

	return nil
}

// sweepResources removes the records of stray resources. It leaves their blobs to sweepBlobs.
func sweepResources(ctx context.Context, s *state.State) error {
	stray, err := state.Read(ctx, s, strayResources)
	if err != nil {
		return err
	}

	for _, service := range stray {
		err := s.Update(ctx, func(tx *state.Tx) error {
			if _, there, err := tx.Keys().Get(keys.Service(service)); err != nil || there {
				return err
			}
			_, err := tx.Keys().RemoveBelow(keys.ServiceResources(service), keyspace.MaxRemovedKeys)
			return err
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// strayResources returns the names below which there are resources of services that do not exist.
func strayResources(v *state.View) (services []string, err error) {
	kvs, err := v.Keys().List(keys.Resources)
	if err != nil {
		return nil, err
	}

	for _, kv := range kvs {
		service, _, _ := strings.Cut(kv.Key[len(keys.Resources):], "/")
		there, err := v.Keys().HasUnguarded(keys.Service(service))
		if err != nil {
			return nil, err
		}

		if !there && charm.CheckService(service) == nil && !slices.Contains(services, service) {
			services = append(services, service)
		}
	}

	return services, nil
}

// sweepBlobs removes the blobs that nothing refers to and that were last touched earlier than before. A
// writer of a blob, or of a reference to one, touches it and so keeps it. If only is not nil, sweepBlobs
// removes no other blobs.
func sweepBlobs(ctx context.Context, s *state.State, before time.Time, only map[string]bool) error {
	heads, err := state.Read(ctx, s, unreferencedBlobs)
	if err != nil {
		return err
	}

	for sum, head := range heads {
		if !head.Touched.Before(before) || only != nil && !only[sum] {
			continue
		}
		if err := s.Keys().RemoveBlob(ctx, sum, head); err != nil && !errors.Is(err, keyspace.ErrConflict) {
			return err
		}
	}

	return nil
}

// unreferencedBlobs returns the heads of the blobs that nothing refers to.
func unreferencedBlobs(v *state.View) (map[string]keyspace.BlobHead, error) {
	used, err := v.ReferencedBlobs()
	if err != nil {
		return nil, err
	}
	kvs, err := v.Keys().List(keyspace.BlobHeadsPrefix)
	if err != nil {
		return nil, err
	}

	heads := map[string]keyspace.BlobHead{}
	for _, kv := range kvs {
		sum := strings.TrimPrefix(kv.Key, keyspace.BlobHeadsPrefix)
		if used[sum] {
			continue
		}
		head, err := keyspace.DecodeBlobHead(kv)
		if v.Keys().Skips(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		heads[sum] = head
	}

	return heads, nil
}
