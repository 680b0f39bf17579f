package simulation

import (
	"strings"

	"bijou/updater"
	"bijou/updater/leader"
	"bijou/updater/record"
)

// simStore is the store as the simulation needs it: commits are atomic and
// conditional, a key's revision is that of its last commit. Values stay what
// they are; that they survive being written is tested in package record.
type simStore struct {
	values    map[string]any
	revisions map[string]int
	revision  int
}

func newSimStore() *simStore {
	return &simStore{values: map[string]any{}, revisions: map[string]int{}}
}

// commit writes all changes as one revision.
func (s *simStore) commit(changes []updater.Change) {
	s.revision++
	for _, c := range changes {
		s.revisions[c.Key] = s.revision
		if c.Value == nil {
			delete(s.values, c.Key)
			continue
		}
		s.values[c.Key] = c.Value
	}
}

// get reads one key; nil is absent.
func get[T any](s *simStore, key string) *T {
	v, ok := s.values[key].(T)
	if !ok {
		return nil
	}
	return &v
}

// below reads all keys with the prefix.
func below[T any](s *simStore, prefix string) map[string]T {
	found := map[string]T{}
	for k, v := range s.values {
		if rest, ok := strings.CutPrefix(k, prefix); ok {
			if t, ok := v.(T); ok {
				found[rest] = t
			}
		}
	}
	return found
}

// byServer reads all servers' keys below the prefix.
func byServer[T any](s *simStore, prefix string) map[int]T {
	found := map[int]T{}
	for rest, v := range below[T](s, prefix) {
		if lrn, err := record.ParseLRN(rest); err == nil {
			found[lrn] = v
		}
	}
	return found
}

// config reads the configuration, of which one key holds all.
func (s *simStore) config(k record.Keys) record.Config {
	c, _ := s.values[k.Config("all")].(record.Config)
	return c
}

// gateOf is the gate that was opened last.
func gateOf(s *simStore, k record.Keys) (g record.Gate) {
	g, _ = s.values[k.Gate()].(record.Gate)
	return g
}

// snapshot reads what the leader decides on.
func (s *simStore) snapshot(k record.Keys, own string) leader.Snapshot {
	snap := leader.Snapshot{
		Keys: k, OwnVersion: own, Config: s.config(k), Target: get[record.Target](s, k.Target()), Gate: gateOf(s, k),
		Repair: get[record.Repair](s, k.Repair()), Published: get[record.Published](s, k.Published()), Pause: get[record.Pause](s, k.Pause()), Recovery: get[record.Recovery](s, k.Recovery()), Current: get[record.Request](s, k.Current()),
		Workers: byServer[record.Status](s, k.Workers()), Contents: below[record.Contents](s, k.AllContents()),
	}
	if v := get[string](s, k.Release()); v != nil {
		snap.Release = *v
	}
	if d := get[record.Degraded](s, k.Degraded()); d != nil {
		snap.Degraded = *d
	}
	for lrn := range byServer[struct{}](s, k.BootServers()) {
		snap.Servers = append(snap.Servers, lrn)
	}
	snap.Servers = record.SortServers(snap.Servers)
	for _, h := range below[record.History](s, k.AllHistory()) {
		if h.ID > snap.LastID {
			snap.LastID, snap.LastTo = h.ID, h.To
		}
		if snap.Current != nil && h.ID == snap.Current.ID {
			snap.Entry = h
		}
	}
	return snap
}
