package hookapitest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"bijou/hookenv/hookapi"
)

// memoryHook is one hook of a Memory. The Memory's lock also guards the hook.
type memoryHook struct {
	hookapi.Secrets // not implemented: scripts test secrets
	m               *Memory
	facts           hookapi.Facts
	ended           bool
	relations       map[int]hookapi.Relation
	ids             map[string][]int
	nodes           map[hookapi.Node]*memoryNode
	ports           []portChange
	leader          *bool // nil if the hook has not read it yet
	asLeader        bool  // whether the hook has written a value that only a leader may write
}

// memoryNode contains a settings node as the hook has read it, and its content after the hook's writes.
type memoryNode struct{ read, now map[string]string }

type portChange struct {
	port hookapi.Port
	open bool
}

// enter locks the world for one call. The caller unlocks m.mu.
func (h *memoryHook) enter(ctx context.Context) error {
	h.m.mu.Lock()
	if h.ended {
		return hookapi.ErrGone
	}
	return ctx.Err()
}

func (h *memoryHook) Facts() hookapi.Facts { return h.facts }

func (h *memoryHook) Relation(ctx context.Context, id int) (hookapi.Relation, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return hookapi.Relation{}, err
	}
	r, err := h.describe(id)
	if err == nil && !h.walksAnywhere() && !h.isOwn(r) {
		return hookapi.Relation{}, hookapi.ErrRelationNotFound
	}
	return r, err
}

// walksAnywhere reports whether the hook can see the members of relations of other services.
func (h *memoryHook) walksAnywhere() bool {
	return h.facts.Operator || h.facts.Dialect != hookapi.Modern
}

// isOwn reports whether the hook's service is an end of the relation.
func (h *memoryHook) isOwn(r hookapi.Relation) bool {
	return slices.ContainsFunc(r.Ends, func(e hookapi.End) bool { return e.Service == h.facts.Service })
}

func (h *memoryHook) describe(id int) (hookapi.Relation, error) {
	if _, ok := h.relations[id]; !ok {
		r := h.m.find(id)
		if r == nil {
			return hookapi.Relation{}, hookapi.ErrRelationNotFound
		}
		h.relations[id] = copyRelation(r.Relation)
	}
	return copyRelation(h.relations[id]), nil
}

// implied fixes the members of the implied relation. At the remote end they are the members from the facts,
// and at the local end they are the unit's current peers.
func (h *memoryHook) implied() {
	f := h.facts
	r := copyRelation(h.m.relation(f.Relation).Relation)
	for i, end := range r.Ends {
		var units []string
		if end.Service == f.Service && end.Service != f.RemoteService && !f.Broken {
			units = end.Units
		}
		for _, unit := range append([]string{f.Unit}, f.Members...) {
			if serviceOf(unit) == end.Service && !slices.Contains(units, unit) {
				units = append(units, unit)
			}
		}
		r.Ends[i].Units = units
	}
	h.relations[r.ID] = r
}

func (h *memoryHook) RelationIDs(ctx context.Context, unit string) ([]int, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return nil, err
	}
	if ids, ok := h.ids[unit]; ok {
		return slices.Clone(ids), nil
	}
	if !h.m.knows(unit) {
		return nil, hookapi.ErrUnknownUnit
	}
	ids := []int{}
	for _, r := range h.m.world.Relations {
		if !h.walksAnywhere() && !h.isOwn(r.Relation) {
			continue
		}
		implied := unit == h.facts.Unit && r.ID == h.facts.Relation
		if implied || slices.ContainsFunc(r.Ends, func(e hookapi.End) bool { return e.Service == unit || slices.Contains(e.Units, unit) }) {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	h.ids[unit] = ids
	return slices.Clone(ids), nil
}

func (h *memoryHook) Settings(ctx context.Context, node hookapi.Node) (map[string]string, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return nil, err
	}
	n, err := h.node(node)
	if err != nil {
		return nil, err
	}
	return maps.Clone(n.now), nil
}

func (h *memoryHook) SetSettings(ctx context.Context, node hookapi.Node, changes map[string]*string) error {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return err
	}
	n, err := h.node(node)
	if err != nil {
		return err
	}
	if node.Service != "" && h.facts.Unit != "" && !h.facts.Operator {
		if node.Service != h.facts.Service || !h.leads() {
			return hookapi.ErrNotLeader
		}
		h.asLeader = true
	}
	apply(n.now, changes)
	return nil
}

// node reads a settings node at its first use.
func (h *memoryHook) node(node hookapi.Node) (*memoryNode, error) {
	if n, ok := h.nodes[node]; ok {
		return n, nil
	}
	r, err := h.describe(node.Relation)
	if err != nil {
		return nil, err
	}
	if !h.facts.Operator && !h.isOwn(r) {
		return nil, hookapi.ErrRelationNotFound
	}
	if node.Service == h.facts.Service && len(r.Ends) == 2 && !h.facts.Operator && !h.leads() {
		return nil, hookapi.ErrNotLeader
	}
	values, ok := h.m.nodes[node]
	ok = ok || slices.ContainsFunc(r.Ends, func(e hookapi.End) bool {
		return node.Service != "" && e.Service == node.Service || slices.Contains(e.Units, node.Unit)
	})
	if !ok {
		return nil, hookapi.ErrUnknownUnit
	}
	n := &memoryNode{read: map[string]string{}, now: map[string]string{}}
	maps.Copy(n.read, values)
	maps.Copy(n.now, values)
	h.nodes[node] = n
	return n, nil
}

func (h *memoryHook) Config(ctx context.Context) (map[string]any, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return nil, err
	}
	return maps.Clone(h.m.world.Config), nil
}

func (h *memoryHook) Address(ctx context.Context, public bool) (string, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	if public {
		return h.m.world.PublicAddress, nil
	}
	return h.m.world.PrivateAddress, nil
}

func (h *memoryHook) SetPort(ctx context.Context, _ string, port hookapi.Port, open bool) error {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return err
	}
	own := h.portsNow()
	isKept := func(o hookapi.Port) bool { return overlap(o, port) && slices.Contains(h.m.ports[h.facts.Unit], o) }
	if i := slices.IndexFunc(own, isKept); i >= 0 && !open {
		return &hookapi.PortConflict{Unit: h.facts.Unit, Open: own[i], Want: port, Closing: true}
	}
	if open && !slices.Contains(own, port) {
		all := maps.Clone(h.m.ports)
		all[h.facts.Unit] = own
		for unit, ports := range all {
			i := slices.IndexFunc(ports, func(o hookapi.Port) bool { return overlap(o, port) })
			if i >= 0 {
				return &hookapi.PortConflict{Unit: unit, Open: ports[i], Want: port}
			}
		}
	}
	h.ports = append(h.ports, portChange{port, open})
	return nil
}

// overlap reports whether two ranges share a port without being equal.
func overlap(a, b hookapi.Port) bool {
	equal := a.From == b.From && a.To == b.To
	return a.Protocol == b.Protocol && a.Protocol != "icmp" && !equal && a.From <= b.To && b.From <= a.To
}

func (h *memoryHook) Ports(ctx context.Context) ([]hookapi.Port, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return nil, err
	}
	return h.portsNow(), nil
}

func (h *memoryHook) portsNow() []hookapi.Port {
	ports := slices.Clone(h.m.ports[h.facts.Unit])
	for _, c := range h.ports {
		ports = slices.DeleteFunc(ports, func(p hookapi.Port) bool { return p == c.port })
		if c.open {
			ports = append(ports, c.port)
		}
	}
	slices.SortFunc(ports, func(a, b hookapi.Port) int {
		// By its name, icmp sorts before tcp and udp.
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return ports
}

func (h *memoryHook) Status(ctx context.Context, ofService bool) (hookapi.Status, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return hookapi.Status{}, err
	}
	if !ofService {
		return h.m.status[false], nil
	}
	status := h.m.status[true]
	status.Units = map[string]hookapi.Status{}
	for _, unit := range h.m.unitsOf(h.facts.Service) {
		status.Units[unit] = hookapi.Status{}
	}
	status.Units[h.facts.Unit] = h.m.status[false]
	return status, nil
}

func (h *memoryHook) SetStatus(ctx context.Context, ofService bool, s hookapi.Status) error {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return err
	}
	if ofService && !h.leads() {
		return hookapi.ErrNotLeader
	}
	h.m.status[ofService] = s
	return nil
}

func (h *memoryHook) Log(level, message string) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if !h.ended {
		h.m.log = append(h.m.log, level+" "+message)
	}
}

func (h *memoryHook) Commit(ctx context.Context) error {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return err
	}
	h.ended = true
	if h.asLeader && h.m.leaders[h.facts.Service] != h.facts.Unit {
		return hookapi.ErrNotLeader
	}
	for node, n := range h.nodes {
		h.m.merge(node, differences(n))
	}
	h.m.ports[h.facts.Unit] = h.portsNow()
	return nil
}

func (h *memoryHook) Abort() {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	h.ended = true
}

// differences returns the keys whose value differs from the value that the hook has read.
func differences(n *memoryNode) map[string]*string {
	changes := map[string]*string{}
	for key, value := range n.now {
		if old, ok := n.read[key]; !ok || old != value {
			changes[key] = &value
		}
	}
	for key := range n.read {
		if _, ok := n.now[key]; !ok {
			changes[key] = nil
		}
	}
	return changes
}

// serviceOf returns the service of a unit.
func serviceOf(unit string) string {
	service, _, _ := strings.Cut(unit, "/")
	return service
}
