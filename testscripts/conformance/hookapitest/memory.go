package hookapitest

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"bijou/hookenv/hookapi"
)

// Memory is an Env in memory, for the tests of the hook tools. It is the shortest implementation that passes
// the suite.
type Memory struct {
	t testing.TB

	mu       sync.Mutex
	world    World
	nodes    map[hookapi.Node]map[string]string
	versions map[hookapi.Node]int64
	ports    map[string][]hookapi.Port // by unit
	status   map[bool]hookapi.Status
	log      []string
	leaders  map[string]string // by service
	workload string
	results  map[string]any
	failure  string
}

// OpenMemory is the [Open] function of Memory.
func OpenMemory(t testing.TB, w World) Env { return NewMemory(t, w) }

// NewMemory returns a Memory with a copy of the fixture.
func NewMemory(t testing.TB, w World) *Memory {
	m := &Memory{
		t: t, world: w,
		nodes:    map[hookapi.Node]map[string]string{},
		versions: map[hookapi.Node]int64{},
		status:   map[bool]hookapi.Status{},
		leaders:  map[string]string{},
		ports:    map[string][]hookapi.Port{},
		results:  map[string]any{},
	}
	if w.Leader {
		m.leaders[serviceOf(w.Unit)] = w.Unit
	}
	m.world.Relations = slices.Clone(w.Relations)
	for i, r := range w.Relations {
		m.world.Relations[i].Relation = copyRelation(r.Relation)
		for unit, settings := range r.Settings {
			m.nodes[hookapi.Node{Relation: r.ID, Unit: unit}] = maps.Clone(settings)
		}
		for service, settings := range r.Apps {
			m.nodes[hookapi.Node{Relation: r.ID, Service: service}] = maps.Clone(settings)
		}
	}
	return m
}

// Lines returns the lines that hooks have logged, as "LEVEL message".
func (m *Memory) Lines() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

// Start begins a hook.
func (m *Memory) Start(facts hookapi.Facts) Running {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := &memoryHook{
		m: m, facts: facts,
		relations: map[int]hookapi.Relation{},
		ids:       map[string][]int{},
		nodes:     map[hookapi.Node]*memoryNode{},
	}
	if facts.Relation != hookapi.NoRelation {
		h.implied()
	}
	return h
}

// Change merges changes into a node as if another process had made them.
func (m *Memory) Change(node hookapi.Node, changes map[string]*string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.merge(node, changes)
}

// Leave removes a unit from a relation.
func (m *Memory) Leave(relation int, unit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.relation(relation)
	for i := range r.Ends {
		r.Ends[i].Units = slices.DeleteFunc(slices.Clone(r.Ends[i].Units), func(u string) bool { return u == unit })
	}
}

// Join adds a unit to a relation.
func (m *Memory) Join(relation int, unit string, settings map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.relation(relation)
	for i, end := range r.Ends {
		if end.Service == serviceOf(unit) {
			r.Ends[i].Units = append(slices.Clone(end.Units), unit)
		}
	}
	m.nodes[hookapi.Node{Relation: relation, Unit: unit}] = maps.Clone(settings)
}

// RemoveRelation removes a relation, with its settings.
func (m *Memory) RemoveRelation(relation int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.world.Relations = slices.DeleteFunc(m.world.Relations, func(r Relation) bool { return r.ID == relation })
}

// Version returns a number that grows with each committed change of a node.
func (m *Memory) Version(node hookapi.Node) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.versions[node]
}

// relation returns a relation that must exist.
func (m *Memory) relation(id int) *Relation {
	r := m.find(id)
	if r == nil {
		m.t.Fatalf("no relation %d in this world", id)
	}
	return r
}

func (m *Memory) find(id int) *Relation {
	for i := range m.world.Relations {
		if m.world.Relations[i].ID == id {
			return &m.world.Relations[i]
		}
	}
	return nil
}

// merge writes a node. It ignores the call if the relation no longer exists.
func (m *Memory) merge(node hookapi.Node, changes map[string]*string) {
	if m.find(node.Relation) == nil && node.Relation > leaderNotes || len(changes) == 0 {
		return
	}
	if m.nodes[node] == nil {
		m.nodes[node] = map[string]string{}
	}
	apply(m.nodes[node], changes)
	m.versions[node]++
}

// knows reports whether a unit or service exists.
func (m *Memory) knows(name string) bool {
	if slices.Contains(m.world.Units, name) || name == m.world.Unit {
		return true
	}
	known := func(unit string) bool { return unit == name || serviceOf(unit) == name }
	for _, r := range m.world.Relations {
		for _, end := range r.Ends {
			if end.Service == name || slices.ContainsFunc(end.Units, known) {
				return true
			}
		}
	}
	return slices.ContainsFunc(m.world.Units, known)
}

// unitsOf returns the units of a service without departed ones.
func (m *Memory) unitsOf(service string) []string {
	names := append(slices.Clone(m.world.Units), m.world.Unit)
	for _, r := range m.world.Relations {
		for _, end := range r.Ends {
			names = append(names, end.Units...)
		}
	}
	return slices.DeleteFunc(names, func(unit string) bool { return serviceOf(unit) != service })
}

func apply(values map[string]string, changes map[string]*string) {
	for key, value := range changes {
		if value == nil {
			delete(values, key)
			continue
		}
		values[key] = *value
	}
}

func copyRelation(r hookapi.Relation) hookapi.Relation {
	r.Ends = slices.Clone(r.Ends)
	for i := range r.Ends {
		r.Ends[i].Units = slices.Clone(r.Ends[i].Units)
	}
	return r
}
