package state

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Sweep finishes what was left half-way and removes what nothing refers to any
// more: services whose destruction was interrupted, the settings of relations
// that are gone, blobs without a reference that nobody has touched for
// keyspace.BlobGrace before now, resources of services that are gone, charms that nobody runs, logs and actions of
// units that went LogGrace before it. The provisioner's leader calls it from time
// to time. It works in batches; one that was interrupted does no harm.
func (s *State) Sweep(ctx context.Context, now time.Time) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"services", s.sweepServices},
		{"relations", s.sweepRelations},
		{"resources", s.sweepResources},
		{"tools", s.sweepTools},
		{"charms", func(ctx context.Context) error { return s.SweepCharms(ctx, now) }},
		{"actions", func(ctx context.Context) error { return s.sweepActions(ctx, now.Add(-LogGrace)) }},
		{"blobs", func(ctx context.Context) error { return s.sweepBlobs(ctx, now.Add(-keyspace.BlobGrace), nil) }},
		{"logs", func(ctx context.Context) error { return s.sweepLogs(ctx, now.Add(-LogGrace)) }},
	} {
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("cannot sweep %s: %w", step.what, err)
		}
	}
	return nil
}

// sweepServices continues destructions that were interrupted.
func (s *State) sweepServices(ctx context.Context) error {
	services, err := Read(ctx, s, (*View).Services)
	if err != nil {
		return err
	}
	for _, sv := range services {
		if sv.Life == Alive {
			continue
		}
		if err := ignoreNotFound(s.DestroyService(ctx, sv.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) sweepRelations(ctx context.Context) error {
	kvs, err := Read(ctx, s, func(v *View) ([]keyspace.KeyValue, error) { return v.keys.List(keys.Relations) })
	if err != nil {
		return err
	}
	return s.space.RemoveKeys(ctx, strayRelationKeys(kvs)) // ids are never used again
}

// strayRelationKeys picks the keys below relations that have no record.
func strayRelationKeys(kvs []keyspace.KeyValue) (stray []string) {
	records := map[string]bool{}
	for _, kv := range kvs {
		if !strings.Contains(kv.Key[len(keys.Relations):], "/") {
			records[kv.Key[len(keys.Relations):]] = true
		}
	}
	for _, kv := range kvs {
		id, _, below := strings.Cut(kv.Key[len(keys.Relations):], "/")
		if below && !records[id] {
			stray = append(stray, kv.Key)
		}
	}
	return stray
}

func (s *State) sweepTools(ctx context.Context) error {
	return s.Update(ctx, func(tx *Tx) error {
		all, err := tx.AllTools()
		if err != nil || len(all) == 0 {
			return err
		}
		env, err := tx.Environment()
		if err != nil {
			return err
		}
		machines, err := tx.Machines()
		used := map[string]bool{env.Tools: true}
		for _, m := range machines {
			used[m.Tools] = true
		}
		for _, t := range all {
			if !used[t.Name] {
				tx.keys.Remove(keys.Tool(t.Name))
			}
		}
		return err
	})
}
