package hookapitest

import (
	"context"
	"maps"

	"bijou/hookenv/hookapi"
)

// A Memory keeps the leader settings and the unit's state in settings nodes, under relation numbers that no
// relation has.
const (
	leaderNotes = -2
	unitNotes   = -3
)

// Lead makes a unit the leader of its service in place of the current one; "" means none.
func (m *Memory) Lead(service, unit string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaders[service] = unit
}

func (h *memoryHook) IsLeader(ctx context.Context) (bool, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return false, err
	}
	return h.leads(), nil
}

// leads reads the leader at its first call, and remembers it.
func (h *memoryHook) leads() bool {
	if h.leader == nil {
		leads := h.facts.Unit != "" && h.m.leaders[h.facts.Service] == h.facts.Unit
		h.leader = &leads
	}
	return *h.leader
}

func (h *memoryHook) LeaderSettings(ctx context.Context) (map[string]string, error) {
	return h.notes(ctx, hookapi.Node{Relation: leaderNotes, Service: h.facts.Service})
}

func (h *memoryHook) SetLeaderSettings(ctx context.Context, changes map[string]*string) error {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return err
	}
	if !h.leads() {
		return hookapi.ErrNotLeader
	}
	h.asLeader = true
	apply(h.note(hookapi.Node{Relation: leaderNotes, Service: h.facts.Service}).now, changes)
	return nil
}

func (h *memoryHook) State(ctx context.Context) (map[string]string, error) {
	return h.notes(ctx, hookapi.Node{Relation: unitNotes, Unit: h.facts.Unit})
}

func (h *memoryHook) SetState(ctx context.Context, changes map[string]*string) error {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return err
	}
	apply(h.note(hookapi.Node{Relation: unitNotes, Unit: h.facts.Unit}).now, changes)
	return nil
}

// notes reads a node that belongs to no relation.
func (h *memoryHook) notes(ctx context.Context, at hookapi.Node) (map[string]string, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return nil, err
	}
	return maps.Clone(h.note(at).now), nil
}

func (h *memoryHook) note(at hookapi.Node) *memoryNode {
	if n, ok := h.nodes[at]; ok {
		return n
	}
	n := &memoryNode{read: map[string]string{}, now: map[string]string{}}
	maps.Copy(n.read, h.m.nodes[at])
	maps.Copy(n.now, h.m.nodes[at])
	h.nodes[at] = n
	return n
}
