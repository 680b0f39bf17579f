package hookapitest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bijou/hookenv/hookapi"
)

// WorkloadVersion returns the workload version that the local unit has set.
func (m *Memory) WorkloadVersion() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.workload
}

func (h *memoryHook) Network(ctx context.Context, binding string, relation int) (hookapi.Network, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return hookapi.Network{}, err
	}
	if !slices.Contains(h.bindings(), binding) {
		return hookapi.Network{}, hookapi.ErrUnknownBinding
	}
	if relation != hookapi.NoRelation {
		r := h.m.find(relation)
		if r == nil || !h.facts.Operator && !h.isOwn(r.Relation) {
			return hookapi.Network{}, hookapi.ErrRelationNotFound
		}
	}
	address := h.m.world.PrivateAddress
	return hookapi.Network{
		Interfaces: []hookapi.Interface{{Name: "eth0", Addresses: []hookapi.Address{{Value: address, Network: subnet(address)}}}},
		Ingress:    []string{address},
		Egress:     []string{subnet(address)},
	}, nil
}

// subnet returns the network of one address.
func subnet(address string) string {
	if strings.Contains(address, ":") {
		return address + "/128"
	}
	return address + "/32"
}

func (h *memoryHook) Bindings(ctx context.Context) ([]string, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return nil, err
	}
	return h.bindings(), nil
}

func (h *memoryHook) bindings() []string {
	names := slices.Clone(h.m.world.Bindings)
	for _, r := range h.m.world.Relations {
		for _, end := range r.Ends {
			if end.Service == serviceOf(h.m.world.Unit) {
				names = append(names, end.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (h *memoryHook) Goals(ctx context.Context) (hookapi.Goals, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return hookapi.Goals{}, err
	}
	goals := hookapi.Goals{Units: map[string]hookapi.Goal{}, Relations: map[string]map[string]hookapi.Goal{}}
	for _, unit := range h.m.unitsOf(h.facts.Service) {
		goals.Units[unit] = hookapi.Goal{Status: "active"}
	}
	for _, r := range h.m.world.Relations {
		h.addGoals(goals, r.Relation)
	}
	return goals, nil
}

// addGoals adds the other end of one relation.
func (h *memoryHook) addGoals(goals hookapi.Goals, r hookapi.Relation) {
	own := slices.IndexFunc(r.Ends, func(e hookapi.End) bool { return e.Service == h.facts.Service })
	if own < 0 || len(r.Ends) < 2 {
		return
	}
	name, other := r.Ends[own].Name, r.Ends[1-own]
	if goals.Relations[name] == nil {
		goals.Relations[name] = map[string]hookapi.Goal{}
	}
	goals.Relations[name][other.Service] = hookapi.Goal{Status: "joined"}
	for _, unit := range other.Units {
		goals.Relations[name][unit] = hookapi.Goal{Status: "active"}
	}
}

func (h *memoryHook) SetVersion(ctx context.Context, version string) error {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return err
	}
	h.m.workload = version
	return nil
}

func (h *memoryHook) Reboot(ctx context.Context, _ bool) error {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return err
	}
	return errors.New("cannot reboot: there is no machine around this hook")
}
