package simulation

import (
	"strings"

	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// simStore is a simple store for the simulation. Commits are atomic and conditional, and a key's revision is
// that of its last commit. Values are not encoded: package record tests their encoding.
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

// get reads one key. It returns nil if the key is absent.
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

// byServer reads the keys of all servers below the prefix.
func byServer[T any](s *simStore, prefix string) map[int]T {
	found := map[int]T{}
	for rest, v := range below[T](s, prefix) {
		if lrn, err := record.ParseLRN(rest); err == nil {
			found[lrn] = v
		}
	}
	return found
}

// config reads the configuration, which is in a single key here.
func (s *simStore) config() record.Config {
	c, _ := s.values[keys.Config("all")].(record.Config)
	return c
}

// gateOf returns the gate that was opened last.
func gateOf(s *simStore) (g record.Gate) {
	g, _ = s.values[keys.Gate].(record.Gate)
	return g
}

// snapshot reads the leader's snapshot.
func (s *simStore) snapshot(own string) decide.Snapshot {
	snap := decide.Snapshot{
		OwnVersion: own, Config: s.config(), Target: get[record.Target](s, keys.Target), Gate: gateOf(s),
		Repair: get[record.Repair](s, keys.Repair), Published: get[record.Published](s, keys.Published), Pause: get[record.Pause](s, keys.Pause), Recovery: get[record.Recovery](s, keys.Recovery), Current: get[record.Request](s, keys.Current),
		Workers: byServer[record.Status](s, keys.Workers), Contents: below[record.Contents](s, keys.AllContents),
	}
	snap.CheckFailure = get[record.CheckFailure](s, keys.CheckFailure)
	if v := get[string](s, keys.Release); v != nil {
		snap.Release = *v
	}
	if d := get[record.Degraded](s, keys.Degraded); d != nil {
		snap.Degraded = *d
	}
	for lrn := range byServer[struct{}](s, keys.BootServers) {
		snap.Servers = append(snap.Servers, lrn)
	}
	snap.Servers = record.SortServers(snap.Servers)
	for _, h := range below[record.History](s, keys.AllHistory) {
		if h.ID > snap.LastID {
			snap.LastID, snap.LastTo = h.ID, h.To
		}
		if snap.Current != nil && h.ID == snap.Current.ID {
			snap.Entry = h
		}
	}
	return snap
}
