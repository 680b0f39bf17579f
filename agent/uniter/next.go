package uniter

import (
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// maxArrivals is how many entries one Enqueue holds, well below what one
// transaction does.
const maxArrivals = 50

// Next decides what the unit does next.
func Next(s Snapshot) Step {
	w := s.Uniter.Workflow
	if s.Gone || s.Unit.Life == state.Dead || s.ended() {
		return Finish{}
	}
	if a := s.arrivals(); len(a) > 0 {
		return Enqueue{a}
	}
	if s.orphaned() {
		return Retire{}
	}
	if s.Running {
		return s.running()
	}
	if op := s.Uniter.Op; op != nil {
		return s.crashed(*op)
	}
	if s.Unit.Life != state.Alive && neverInstalled(w) {
		return Finish{}
	}
	if w.Deploying != "" {
		return DeployCharm{s.wanted()}
	}
	if s.Upgrade.Force && s.upgrades() {
		return DeployCharm{s.Upgrade.Charm}
	}
	if f := w.Failure; f != nil {
		step, until := s.failure(state.NoRelation, *f, s.Unit.Resolved)
		if step == nil {
			step = s.asked()
		}
		if step == nil {
			step = Wait{until}
		}
		return step
	}
	return s.workflow()
}

// arrivals is what is to be queued, of all relations that the unit is in. Before
// its start hook the queue is closed: who has come by then arrives after it.
func (s *Snapshot) arrivals() []hook.Arrival {
	var all []hook.Arrival
	tail := s.Uniter.Workflow.NextPlace
	if tail < firstPlace {
		return nil
	}
	for _, id := range s.entered() {
		if s.Uniter.Relations[id].State == state.RelationDeparted {
			continue
		}
		some := hook.Arrivals(id, s.Uniter.Members[id], s.present(id), s.leaving(id), tail)
		all = append(all, some...)
		tail = tailAfter(some, tail)
	}
	return all[:min(len(all), maxArrivals)]
}

// present lists whom of a relation the unit is told of: services' own settings only in
// the modern dialect.
func (s *Snapshot) present(id int) []state.Member {
	all := s.Relations[id].Members
	if last := len(all) - 1; last >= 0 && !s.Hooks.Services && !hook.IsUnit(all[last].Unit) {
		return all[:last]
	}
	return all
}

// tailAfter is the next free place after what has arrived.
func tailAfter(arrivals []hook.Arrival, tail int64) int64 {
	for _, a := range arrivals {
		tail = max(tail, a.State.Place+1)
	}
	return tail
}

// ended is true for a unit whose last hook is done.
func (s *Snapshot) ended() bool {
	word := s.Uniter.Workflow.State
	return word == removed || word == stopped && !s.Hooks.Remove
}

// neverInstalled is true for a unit that has nothing to stop.
func neverInstalled(w state.Workflow) bool {
	return w.State == "" || w.Failure != nil && w.Failure.Hook.Kind == hook.Install
}

// upgrades is true if the unit is to go over to its service's charm. One that
// leaves ends with what it has.
func (s *Snapshot) upgrades() bool {
	return s.Unit.Life == state.Alive && s.Upgrade.Wants(s.Unit.Name, s.Uniter.Workflow.Charm)
}

// wanted is the charm that is to be in the unit's folder while nobody knows which
// one is: an agent died while it put one there. That may not be wanted any more.
func (s *Snapshot) wanted() string {
	w := s.Uniter.Workflow
	switch {
	case s.upgrades() && (w.Failure == nil || s.Upgrade.Force):
		return s.Upgrade.Charm
	case w.Charm == "" || w.State == "":
		return s.Charm
	}
	return w.Charm
}

// failure decides about a failed hook: nil for nothing yet, and then the time
// at which it is retried (zero: never by itself).
func (s *Snapshot) failure(relation int, f state.Failure, resolved state.Resolved) (Step, time.Time) {
	retry := RunHook{f.Hook, FromFailure}
	switch {
	case resolved == state.ResolvedDone:
		return Resolve{relation}, time.Time{}
	case resolved == state.ResolvedRetry:
		return retry, time.Time{}
	case f.Interrupted || !s.RetryHooks:
		return nil, time.Time{}
	case !s.Now.Before(f.RetryAt):
		return retry, time.Time{}
	}
	return nil, f.RetryAt
}

// workflow decides for a unit that is not in an error state.
func (s *Snapshot) workflow() Step {
	w := s.Uniter.Workflow
	configured := w.State == installed || s.Unit.Life == state.Alive // a unit that leaves is configured no more
	switch {
	case w.Charm == "", w.State == "" && w.Charm != s.Charm:
		return DeployCharm{s.Charm}
	case s.upgrades():
		return DeployCharm{s.Upgrade.Charm}
	case w.UpgradeOwed:
		return RunHook{hook.Unit(hook.UpgradeCharm), FromWorkflow}
	case w.State == "" && s.leaderless():
		return Wait{}
	case w.State == "":
		return RunHook{hook.Unit(hook.Install), FromWorkflow}
	case w.State == stopped:
		return RunHook{hook.Unit(hook.Remove), FromWorkflow}
	}
	if w.Upgraded && configured {
		return RunHook{hook.Unit(hook.ConfigChanged), FromWorkflow}
	}
	if w.State == installed {
		if step := s.create(); step != nil {
			return step
		}
	}
	switch {
	case s.leaderHook() != "":
		return RunHook{hook.Unit(s.leaderHook()), FromWorkflow}
	case configured && (w.Restarted || w.ConfigVersion != s.ConfigVersion):
		return RunHook{hook.Unit(hook.ConfigChanged), FromWorkflow}
	case w.State == installed:
		return RunHook{hook.Unit(hook.Start), FromWorkflow}
	}
	return s.started()
}

// started decides for a unit whose start hook is done.
func (s *Snapshot) started() Step {
	if step := s.enterOrLeave(); step != nil {
		return step
	}
	if step := s.asked(); step != nil {
		return step
	}
	step, until := s.failures()
	if step != nil {
		return step
	}
	if step := s.create(); step != nil {
		return step
	}
	if e, ok := hook.Pick(s.queue()); ok {
		return RunHook{e.Hook(), FromQueue}
	}
	if s.Unit.Life != state.Alive {
		if len(s.Uniter.Relations) == 0 && len(s.Unit.Subordinates) == 0 {
			return RunHook{hook.Unit(hook.Stop), FromWorkflow}
		}
		return Wait{until}
	}
	return s.idle(until)
}

// enterOrLeave changes memberships, which needs no hook; nil if none is to be changed.
func (s *Snapshot) enterOrLeave() Step {
	for _, id := range s.entered() {
		_, exists := s.Relations[id]
		if !exists || s.Uniter.Relations[id].State == state.RelationDeparted {
			return LeaveRelation{id}
		}
	}
	for _, id := range sortedKeys(s.Relations) {
		if _, in := s.Uniter.Relations[id]; !in && !s.leaving(id) {
			return EnterRelation{s.Relations[id].Relation}
		}
	}
	return nil
}

// failures decides about the relations whose hooks have failed; without a step
// it answers when the first of them is due.
func (s *Snapshot) failures() (Step, time.Time) {
	var until time.Time
	for _, id := range s.entered() {
		rs := s.Uniter.Relations[id]
		if rs.Failure == nil {
			continue
		}
		if s.Relations[id].Life == state.Dead {
			return Resolve{id}, time.Time{} // nobody could resolve what is in no status any more
		}
		step, due := s.failure(id, *rs.Failure, s.Unit.ResolvedRelations[id])
		if step != nil {
			return step, time.Time{}
		}
		until = earlier(until, due)
	}
	return nil, until
}

// queue is what is pending in all relations without error; of one that is left
// and has no members any more, the broken that ends it.
func (s *Snapshot) queue() []hook.Entry {
	var entries []hook.Entry
	for _, id := range s.entered() {
		rs := s.Uniter.Relations[id]
		if rs.Failure != nil {
			continue
		}
		relation := s.Relations[id].Relation
		for member, state := range s.Uniter.Members[id] {
			if state.Pending != "" {
				entries = append(entries, hook.Entry{Relation: relation, Member: member, State: state})
			}
		}
		if s.leaving(id) && len(s.Uniter.Members[id]) == 0 {
			entries = append(entries, hook.Entry{Relation: relation, State: state.MemberState{Pending: hook.Broken}})
		}
	}
	return entries
}

// idle decides for a unit that has nothing to do.
func (s *Snapshot) idle(until time.Time) Step {
	if s.StatusInterval <= 0 {
		return Wait{until}
	}
	due := s.LastHook.Add(s.StatusInterval)
	if !s.Now.Before(due) {
		return RunHook{hook.Unit(hook.UpdateStatus), FromWorkflow}
	}
	return Wait{earlier(until, due)}
}

// earlier is the earlier of two times, of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
