package state

import (
	"context"
	"errors"
	"strings"
	"time"

	"bijou/state/store"
)

// charmGrace is how long a charm's archive is kept after it was last written or referred
// to: whoever has just stored the same one commits its reference in that time.
const charmGrace = time.Minute

// SweepCharms removes the charms that no service runs or has run before that, and no unit
// runs or goes over to, if their archives were not touched for a minute before now.
func (s *State) SweepCharms(ctx context.Context, now time.Time) error {
	sums := map[string]bool{}
	for {
		n := 0
		err := s.Update(ctx, func(tx *Tx) error {
			old, err := tx.unusedCharms(now.Add(-charmGrace))
			for _, c := range old[:min(len(old), maxRemoved)] {
				tx.remove(charmKey(c.URL.String()))
				sums[c.SHA256] = true
			}
			n = len(old)
			return err
		})
		if err != nil {
			return err
		}
		if n <= maxRemoved {
			break
		}
	}
	if len(sums) == 0 {
		return nil
	}
	return s.sweepBlobs(ctx, now.Add(-charmGrace), sums)
}

// unusedCharms lists what SweepCharms removes. The commit becomes conditional on what
// services run: units go over to nothing else.
func (tx *Tx) unusedCharms(before time.Time) (unused []Charm, err error) {
	used, err := tx.charmsOfServices()
	if err != nil {
		return nil, err
	}
	units, err := tx.peek(unitsPrefix)
	uniters, uerr := tx.peek(unitersPrefix)
	charms, cerr := tx.Charms()
	if err := errors.Join(err, uerr, cerr, addCharmsOfUnits(append(units, uniters...), used)); err != nil {
		return nil, err
	}
	for _, c := range charms {
		head, err := tx.blobHead(c.SHA256)
		if err != nil {
			return nil, err
		}
		if !used[c.URL.String()] && head.Touched.Before(before) {
			unused = append(unused, c)
		}
	}
	return unused, nil
}

// charmsOfServices are those that services run, and have run before.
func (tx *Tx) charmsOfServices() (map[string]bool, error) {
	used := map[string]bool{}
	services, err := tx.Services()
	if err != nil {
		return nil, err
	}
	for _, sv := range services {
		mark, err := tx.Upgrade(sv.Name)
		if err != nil {
			return nil, err
		}
		used[sv.Charm], used[mark.Charm], used[mark.Before] = true, true, true
	}
	return used, nil
}

// addCharmsOfUnits adds those that records of units and of their agents name.
func addCharmsOfUnits(kvs []store.KV, used map[string]bool) error {
	for _, kv := range kvs {
		if strings.Count(kv.Key, "/") != 2 && !strings.HasSuffix(kv.Key, "/workflow") {
			continue
		}
		record, err := decode[struct {
			Charm     string `json:"charm"`
			Deploying string `json:"deploying"`
		}](kv)
		if err != nil {
			return err
		}
		used[record.Charm], used[record.Deploying] = true, true
	}
	return nil
}
