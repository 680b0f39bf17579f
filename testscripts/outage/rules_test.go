package outage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// violations holds one unit's record against spec/hooks.md: the order of hooks,
// what they were told of the members, and that nothing they saw went back.
func violations(events []event) []string { return hearAll(events).wrong }

func hearAll(events []event) *judge {
	all, wrong := runs(events)
	j := &judge{members: map[string]*member{}, broken: map[int]bool{}, failed: map[int]string{}, clients: map[string]bool{}, wrong: wrong}
	for _, r := range all {
		j.hear(r)
	}
	return j
}

// judge hears a unit's hook runs one by one.
type judge struct {
	members map[string]*member // by relation and name
	broken  map[int]bool
	failed  map[int]string // by relation (-1: the unit): the hook that must be run again first
	clients map[string]bool
	before  []string // the unit's own hooks that have succeeded
	stopped bool
	wrong   []string
}

// member is what one remote unit is to the unit.
type member struct {
	relation int
	name     string
	in       bool
	told     bool   // changed has succeeded since it joined
	owed     bool   // joined has succeeded: changed directly follows
	passed   string // what ran in that relation before it did
	failed   string // the kind of the last run, if it has failed
	beat     int    // the newest that was seen
}

func (j *judge) say(r run, format string, args ...any) {
	j.wrong = append(j.wrong, fmt.Sprintf("%s %s (%s): ", r.Hook, r.Remote, r.ID)+fmt.Sprintf(format, args...))
}

func (j *judge) hear(r run) {
	if j.clients[r.Client] {
		j.say(r, "shares its client id with another run")
	}
	j.clients[r.Client] = true
	if j.stopped {
		j.say(r, "runs after stop")
	}
	scope := -1
	if r.kind() != "" {
		scope = r.relation()
	}
	run := r.Hook + " " + r.Remote
	for _, s := range []int{-1, scope} {
		if first := j.failed[s]; first != "" && first != run {
			j.say(r, "runs although %s has failed and comes first", first)
		}
	}
	delete(j.failed, scope)
	if r.failed() && !r.cut {
		j.failed[scope] = run
	}
	if scope == -1 {
		j.hearOwn(r)
	} else {
		j.hearRelation(r)
	}
}

// hearOwn is of the hooks that are in no relation.
func (j *judge) hearOwn(r run) {
	order := []string{"install", "config-changed", "start"}
	n := len(j.before)
	// A configuration that changed meanwhile may come again before start.
	again := n > 0 && r.Hook == "config-changed" && j.before[n-1] == r.Hook
	if n < len(order) && r.Hook != order[n] && !again {
		j.say(r, "comes after %v, want %s", j.before, order[n])
	}
	if r.failed() {
		return
	}
	if !again {
		j.before = append(j.before, r.Hook)
	}
	j.stopped = r.Hook == "stop"
}

func (j *judge) hearRelation(r run) {
	if len(j.before) < 3 {
		j.say(r, "runs before the unit has started: %v", j.before)
	}
	if j.broken[r.relation()] {
		j.say(r, "runs after broken")
	}
	if r.kind() == "broken" {
		j.hearBroken(r)
		return
	}
	key := r.ID + " " + r.Remote
	m := j.members[key]
	if m == nil {
		m = &member{relation: r.relation(), name: r.Remote}
		j.members[key] = m
	}
	for _, other := range j.members {
		if other.owed && other != m && other.relation == m.relation {
			other.passed = r.Hook + " " + r.Remote
		}
	}
	j.hearOrder(r, m)
	j.hearSight(r, m)
}

// hearOrder is about what comes after what, for one member. A hook that has
// failed may be run again.
func (j *judge) hearOrder(r run, m *member) {
	again := m.failed == r.kind()
	switch {
	case r.kind() == "joined" && m.in && !again:
		j.say(r, "has joined already")
	case r.kind() != "joined" && !m.in && !again:
		j.say(r, "is not in")
	case r.kind() == "changed" && m.owed && m.passed != "":
		j.say(r, "does not directly follow its joined: %s came before", m.passed)
	}
	m.owed, m.passed, m.failed = r.kind() == "joined" && !r.failed(), "", ""
	if r.failed() || r.cut {
		m.failed = r.kind()
	}
	m.in = r.kind() != "departed"
	m.told = m.in && (m.told || r.kind() == "changed" && !r.failed())
}

// hearSight is about what the hook saw.
func (j *judge) hearSight(r run, m *member) {
	listed := slices.Contains(strings.Fields(r.Members), r.Remote)
	if listed != (r.kind() != "departed") {
		j.say(r, "members are %q", r.Members)
	}
	seen, err := strconv.Atoi(r.Settings["beat"])
	if err != nil {
		return
	}
	if seen < m.beat {
		j.say(r, "sees beat %d after %d", seen, m.beat)
	}
	m.beat = max(m.beat, seen)
}

func (j *judge) hearBroken(r run) {
	for _, m := range j.members {
		if m.relation == r.relation() && m.in {
			j.say(r, "runs although %s is in", m.name)
		}
	}
	if r.Members != "" || r.Remote != "" {
		j.say(r, "members are %q, remote %q", r.Members, r.Remote)
	}
	j.broken[r.relation()] = !r.failed() && !r.cut
}
