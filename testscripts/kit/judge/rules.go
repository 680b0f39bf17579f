package judge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Violations checks one unit's record against docs/reference/hooks.md: the order of the hooks, the members
// that they saw, and that they never saw an older value after a newer one.
func Violations(events []Event) []string { return hearAll(events).wrong }

func hearAll(events []Event) *judge {
	all, wrong := Runs(events)
	j := &judge{members: map[string]*member{}, broken: map[int]ending{}, failed: map[int]string{}, clients: map[string]bool{}, upgraded: map[int]bool{}, wrong: wrong}
	for _, r := range all {
		j.hear(r)
	}
	return j
}

// judge processes a unit's hook runs one by one.
type judge struct {
	members map[string]*member // by relation and name
	broken  map[int]ending     // by relation
	failed  map[int]string     // by relation (-1 is the unit): the hook that must run again first
	clients map[string]bool
	before  []string // the unit's own hooks that have succeeded
	unsure  bool     // the last of them may run again, because the power was cut before its success was recorded
	stopped bool
	wrong   []string

	revision  int          // of the charm that ran last
	excused   bool         // the operator has resolved install: the charm may have changed since it failed
	upgraded  map[int]bool // the revisions whose upgrade-charm has succeeded
	configure bool         // upgrade-charm has succeeded: config-changed comes next
	early     []string     // reports about hooks after upgrade-charm, which count once config-changed or upgrade-charm follows
	restarted bool         // the agent has restarted, so a config-changed is owed
}

// ending is the state of a relation's end for a unit. If told is true, the unit has run the hook that reports
// the end. After a power cut it may run that hook again, but not if final is true.
type ending struct{ told, final bool }

// member is the state of one remote unit as the unit has seen it.
type member struct {
	relation int
	name     string
	in       bool
	told     bool   // changed has succeeded since it joined
	owed     bool   // joined has succeeded: changed directly follows
	passed   string // a hook in that relation that ran before changed
	failed   string // the kind of the last run, if it has failed
	beat     int    // the newest number that the unit has seen
}

func (j *judge) say(r Run, format string, args ...any) {
	j.wrong = append(j.wrong, fmt.Sprintf("%s %s (%s): ", r.Hook, r.Remote, r.ID)+fmt.Sprintf(format, args...))
}

func (j *judge) hear(r Run) {
	switch r.Event.Event {
	case Died:
		j.hearDeath(r)
		return
	case Resolved:
		j.hearResolved(r)
		return
	}
	if j.clients[r.Client] {
		j.say(r, "shares its client id with another run")
	}
	j.clients[r.Client] = true
	if j.stopped {
		j.say(r, "runs after stop")
	}
	again := j.failed[r.scope()] == r.name()
	for _, s := range []int{-1, r.scope()} {
		if first := j.failed[s]; first != "" && first != r.name() {
			j.say(r, "runs although %s has failed and comes first", first)
		}
	}
	delete(j.failed, r.scope())
	if r.Failed() && !r.Cut || r.Redo {
		j.failed[r.scope()] = r.name()
	}
	j.hearRevision(r, again)
	if r.scope() == -1 {
		j.hearOwn(r)
	} else {
		j.hearRelation(r)
	}
}

// scope returns the relation whose other hooks wait if the hook fails. It is -1 if all hooks wait.
func (r Run) scope() int {
	if r.Kind() == "" {
		return -1
	}
	return r.Relation()
}

func (r Run) name() string { return r.Hook + " " + r.Remote }

// hearDeath processes the death of an agent. If a hook was running according to the state but had not begun,
// it must come next.
func (j *judge) hearDeath(r Run) {
	j.restarted = true
	if r.Hook != "" {
		j.failed[r.scope()] = r.name()
	}
}

// hearResolved processes a hook that counts as done.
func (j *judge) hearResolved(r Run) {
	delete(j.failed, r.scope())
	if r.scope() != -1 {
		return
	}
	j.hearOwn(r)
	j.excused = j.excused || r.Hook == "install"
	if r.Hook == "config-changed" {
		j.restarted = false
	}
}

// hearRevision checks the charm revision of a hook. A new revision begins with its upgrade-charm, unless no
// revision was installed before. Next comes config-changed. Only a failed hook may run again before that, in
// a unit that was upgraded by force. If that hook was install, the unit owes no upgrade-charm, even if the
// operator resolves it.
func (j *judge) hearRevision(r Run, again bool) {
	free := again || j.excused || len(j.before) == 0
	if r.Revision != j.revision && !free && r.Hook != "upgrade-charm" {
		j.say(r, "is of revision %d, after %d, and comes before upgrade-charm", r.Revision, j.revision)
	}
	j.revision, j.excused = r.Revision, false
	switch {
	case r.Hook != "config-changed" && r.Hook != "upgrade-charm":
		// A unit that is being removed is no longer configured.
		if j.configure {
			j.early = append(j.early, fmt.Sprintf("%s %s (%s): comes between upgrade-charm and config-changed", r.Hook, r.Remote, r.ID))
		}
		return
	case r.Hook == "upgrade-charm" && r.counts():
		j.configure, j.upgraded[r.Revision] = true, true
	case r.Hook == "config-changed":
		j.configure = false
		j.restarted = j.restarted && !r.counts()
	}
	j.wrong, j.early = append(j.wrong, j.early...), nil
}

// hearOwn checks hooks that belong to no relation.
func (j *judge) hearOwn(r Run) {
	if r.Hook == "upgrade-charm" || strings.HasPrefix(r.Hook, "leader-") { // of leaders: hearRevision
		return
	}
	order := []string{"install", "config-changed", "start"}
	if n := len(j.before); j.unsure && n > 0 && j.before[n-1] == r.Hook {
		j.before = j.before[:n-1] // its success was not recorded
	}
	j.unsure = r.Cut

	n := len(j.before)
	// If the configuration has changed since, config-changed may run again before start.
	again := n > 0 && r.Hook == "config-changed" && j.before[n-1] == r.Hook
	if n < len(order) && r.Hook != order[n] && !again {
		j.say(r, "comes after %v, want %s", j.before, order[n])
	}
	if !r.counts() {
		return
	}
	if !again {
		j.before = append(j.before, r.Hook)
	}
	j.stopped = r.Hook == "stop"
}

func (j *judge) hearRelation(r Run) {
	if len(j.before) < 3 {
		j.say(r, "runs before the unit has started: %v", j.before)
	}
	if j.broken[r.Relation()].final {
		j.say(r, "runs after broken")
	}
	if r.Kind() == "broken" {
		j.hearBroken(r)
		return
	}
	key := r.ID + " " + r.Remote
	m := j.members[key]
	if m == nil {
		m = &member{relation: r.Relation(), name: r.Remote}
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

// hearOrder checks the order of hooks for one member. A failed hook may run again.
func (j *judge) hearOrder(r Run, m *member) {
	again := m.failed == r.Kind()
	switch {
	case r.Kind() == "joined" && m.in && !again:
		j.say(r, "has joined already")
	case r.Kind() != "joined" && !m.in && !again:
		j.say(r, "is not in")
	case r.Kind() == "changed" && m.owed && m.passed != "":
		j.say(r, "does not directly follow its joined: %s came before", m.passed)
	}
	m.owed, m.passed, m.failed = r.Kind() == "joined" && r.counts(), "", ""
	if r.Failed() || r.Cut || r.Redo {
		m.failed = r.Kind()
	}
	m.in = r.Kind() != "departed"
	m.told = m.in && (m.told || r.Kind() == "changed" && r.counts())
}

// hearSight checks the members and numbers that the hook saw.
func (j *judge) hearSight(r Run, m *member) {
	listed := slices.Contains(strings.Fields(r.Members), r.Remote)
	if listed != (r.Kind() != "departed") {
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

func (j *judge) hearBroken(r Run) {
	for _, m := range j.members {
		if m.relation == r.Relation() && m.in {
			j.say(r, "runs although %s is in", m.name)
		}
	}
	if r.Members != "" || r.Remote != "" {
		j.say(r, "members are %q, remote %q", r.Members, r.Remote)
	}
	j.broken[r.Relation()] = ending{told: r.counts(), final: r.counts() && !r.Cut}
}
