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

// charmGrace is how long a charm's archive is kept after its blob was last touched. A process that has just
// stored the same archive commits its reference within that time.
const charmGrace = keyspace.MinBlobGrace

// Charms removes unused charms, at most keyspace.MaxRemovedKeys of them, and those of their archives to which no
// other record refers. A charm is in use if a service runs it, ran it before its last upgrade, or keeps it so
// that an operator can return to it. It is also in use if a unit runs it or upgrades to it. An unused charm
// stays for charmGrace after its archive was last touched.
func Charms(ctx context.Context, s *state.State, now time.Time) error {
	var sums map[string]bool
	err := s.Update(ctx, func(tx *state.Tx) error {
		// After a conflict, this function runs again.
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
	if err != nil {
		return err
	}
	if len(sums) == 0 {
		return nil
	}

	return sweepBlobs(ctx, s, now.Add(-charmGrace), sums) // only the archives of the removed charms
}

// unusedCharms lists the charms that no service, unit or agent uses, and whose archives were last touched before
// the given time. The services are conditions of the commit. The units and their agents are not conditions,
// since units change only to charms of their services.
func unusedCharms(tx *state.Tx, before time.Time) (unused []state.Charm, err error) {
	services, err := tx.Keys().List(keys.Services)
	if err != nil {
		return nil, err
	}
	units, err := tx.Keys().ListUnguarded(keys.Units)
	if err != nil {
		return nil, err
	}
	uniters, err := tx.Keys().ListUnguarded(keys.Uniters)
	if err != nil {
		return nil, err
	}
	charms, err := tx.Charms()
	if err != nil {
		return nil, err
	}

	used := map[string]bool{}
	if err := addUsedCharms(tx.View, slices.Concat(services, units, uniters), used); err != nil {
		return nil, err
	}

	for _, c := range charms {
		// The head of an archive that is gone has the zero time, which is before all others.
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

// charmNames decodes the charms' URLs in any record that names charms. All charms in its fields are in use.
type charmNames struct {
	Charm     string                   // in a service, an upgrade mark, a unit or a workflow
	Before    string                   // in an upgrade mark
	Deploying string                   // in a workflow
	Kept      []struct{ Charm string } // in a service
}

// addUsedCharms adds to used the URLs of the charms that the records of services, upgrade marks, units and agents
// name. A damaged service or upgrade mark is an error, since otherwise its charms could be removed. Damaged
// records of units and agents are skipped: agents write them, and one agent must not stop the sweep.
func addUsedCharms(v *state.View, kvs []keyspace.KeyValue, used map[string]bool) error {
	for _, kv := range kvs {
		if !namesCharms(kv.Key) {
			continue
		}

		record, err := keyspace.Decode[charmNames](kv)
		isOfService := strings.HasPrefix(kv.Key, keys.Services) // also an upgrade mark
		if !isOfService && v.Keys().Skips(err) {
			continue
		}
		if err != nil {
			return err
		}

		// A field that the record does not have adds "", which is no charm's URL.
		used[record.Charm] = true
		used[record.Before] = true
		used[record.Deploying] = true
		for _, kept := range record.Kept {
			used[kept.Charm] = true
		}
	}

	return nil
}

// namesCharms reports whether the record at a key of services, units or their agents names charms. Such records
// are services, units, upgrade marks and workflows.
func namesCharms(key string) bool {
	depth := strings.Count(key, "/")
	isService := depth == 1
	isUnit := depth == 2 && strings.HasPrefix(key, keys.Units)
	return isService || isUnit || strings.HasSuffix(key, "/upgrade") || strings.HasSuffix(key, "/workflow")
}

// sweepResources removes the records of resources whose services do not exist. sweepBlobs removes their
// blobs.
func sweepResources(ctx context.Context, s *state.State) error {
	stray, err := state.Read(ctx, s, strayResources)
	if err != nil {
		return err
	}

	for _, service := range stray {
		err := s.Update(ctx, func(tx *state.Tx) error {
			_, exists, err := tx.Keys().Get(keys.Service(service))
			if err != nil {
				return err
			}
			if exists {
				return nil
			}

			// A service has at most resources.MaxPerService resources, which equals keyspace.MaxRemovedKeys. If
			// there are more nevertheless, the next sweep removes them.
			_, err = tx.Keys().RemoveBelow(keys.ServiceResources(service), keyspace.MaxRemovedKeys)
			return err
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// strayResources returns the names of services that do not exist but still have resources. It leaves out names
// that a service cannot have.
func strayResources(v *state.View) (services []string, err error) {
	kvs, err := v.Keys().List(keys.Resources)
	if err != nil {
		return nil, err
	}

	for _, kv := range kvs {
		service, _, _ := strings.Cut(kv.Key[len(keys.Resources):], "/")
		exists, err := v.Keys().HasUnguarded(keys.Service(service))
		if err != nil {
			return nil, err
		}

		isListed := slices.Contains(services, service)
		if !exists && !isListed && charm.CheckService(service) == nil {
			services = append(services, service)
		}
	}

	return services, nil
}

// maxTouchedAhead is how far the clocks of writers can be ahead of a sweep. A blob with a later time is
// swept, since it would otherwise stay forever.
const maxTouchedAhead = 24 * time.Hour

// sweepBlobs removes the blobs to which no record refers, if they were last touched before the given time, or
// by a clock that is far ahead. A writer of a blob, or of a reference to a blob, makes sure that the blob was
// touched recently, and so keeps it. If the set only is not nil, sweepBlobs removes only blobs whose sums are
// in the set.
func sweepBlobs(ctx context.Context, s *state.State, before time.Time, only map[string]bool) error {
	heads, err := state.Read(ctx, s, unreferencedBlobs)
	if err != nil {
		return err
	}

	for sum, head := range heads {
		isSelected := only == nil || only[sum]
		isOld := head.Touched.Before(before)
		// The caller's current time is at most BlobGrace after before.
		isAhead := head.Touched.After(before.Add(keyspace.BlobGrace + maxTouchedAhead))
		if !isSelected || !isOld && !isAhead {
			continue
		}

		// A conflict means that the head has changed since it was read, so the blob may be in use again.
		if err := s.Keys().RemoveBlob(ctx, sum, head); err != nil && !errors.Is(err, keyspace.ErrConflict) {
			return err
		}
	}

	return nil
}

// unreferencedBlobs returns the heads of the blobs to which no record refers, by sum. It skips heads that do not
// decode.
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
