package decide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/agent/hook"
	"bijou/state"
)

var (
	noon = time.Date(2014, 6, 1, 12, 0, 0, 0, time.UTC)
	db   = hook.Relation{ID: 1, Name: "db", RemoteService: "mysql"}
	ring = hook.Relation{ID: 0, Name: "ring", RemoteService: "blog", Peer: true}
)

const charmURL = "local:jammy/blog-1"

// idle returns a started unit in relation 1. The relation has one member, which has no new settings.
func idle() Snapshot {
	return Snapshot{
		Now:           noon,
		Unit:          state.Unit{Name: "blog/0", Service: "blog", Life: state.Alive},
		Charm:         charmURL,
		ConfigVersion: 3,
		Uniter: state.Uniter{
			Workflow:  state.Workflow{State: stateStarted, Charm: charmURL, ConfigVersion: 3, NextPlace: 5},
			Relations: map[int]state.RelationState{1: {State: state.RelationUp}},
			Members:   map[int]map[string]state.MemberState{1: {"mysql/0": {State: hook.In, Version: 2, Seen: 2}}},
		},
		Relations:      map[int]Relation{1: {Relation: db, Life: state.Alive, Members: []state.Member{{Unit: "mysql/0", Version: 2}}}},
		RetryHooks:     true,
		StatusInterval: 5 * time.Minute,
		LastHook:       noon.Add(-time.Minute),
	}
}

// fresh returns a unit that has run no hook yet, in a service with relation 1.
func fresh() Snapshot {
	s := idle()
	s.Uniter = state.Uniter{}
	return s
}

func failureOf(h state.Hook, retryAt time.Time) *state.Failure {
	return &state.Failure{Hook: h, Message: "exit code 1", Attempts: 1, RetryAt: retryAt}
}

// run returns a RunHook of the unit.
func run(kind string) Step { return RunHook{hook.ForUnit(kind), FromWorkflow} }

// runIn returns a RunHook from the queue of relation 1.
func runIn(kind, remote string) Step { return RunHook{hook.ForRelation(kind, db, remote), FromQueue} }

type nextCase struct {
	name   string
	from   func() Snapshot
	change func(s *Snapshot)
	want   Step
}

func (tc nextCase) check(t *testing.T) {
	s := tc.from()
	if tc.change != nil {
		tc.change(&s)
	}
	if diff := cmp.Diff(tc.want, Next(s)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", tc.name, diff)
	}
}

func checkAll(t *testing.T, cases []nextCase) {
	for _, tc := range cases {
		tc.check(t)
	}
}

func workflow(word string) func(s *Snapshot) {
	return func(s *Snapshot) {
		s.Uniter.Workflow = state.Workflow{State: word, Charm: charmURL, ConfigVersion: 3}
	}
}

func TestNextBeforeStart(t *testing.T) {
	checkAll(t, []nextCase{
		{"nothing done", fresh, nil, DeployCharm{charmURL}},
		{"charm deployed", fresh, workflow(""), run(hook.Install)},
		{"installed, config-changed owed", fresh, func(s *Snapshot) {
			workflow(stateInstalled)(s)
			s.Uniter.Workflow.ConfigOwed = true
		}, run(hook.ConfigChanged)},
		{"installed, configured meanwhile", fresh, func(s *Snapshot) {
			workflow(stateInstalled)(s)
			s.ConfigVersion = 4
		}, run(hook.ConfigChanged)},
		{"installed and configured", fresh, workflow(stateInstalled), run(hook.Start)},
		{"started: it enters its relation", fresh, workflow(stateStarted), EnterRelation{db}},
		{"dying before anything ran", fresh, dying, Finish{}},
		{"dying while installed: it goes its whole way", fresh, func(s *Snapshot) {
			workflow(stateInstalled)(s)
			dying(s)
		}, run(hook.Start)},
		{"a relation that goes is not entered", fresh, func(s *Snapshot) {
			workflow(stateStarted)(s)
			s.Relations[1] = Relation{Relation: db, Life: state.Dying}
		}, Wait{noon.Add(4 * time.Minute)}},
	})
}

func dying(s *Snapshot) { s.Unit.Life = state.Dying }

func member(s *Snapshot, m state.MemberState) { s.Uniter.Members[1]["mysql/0"] = m }

func vanished(s *Snapshot) {
	s.Uniter.Relations[1] = state.RelationState{State: state.RelationUp, Name: "db", RemoteService: "mysql"}
	s.Relations = map[int]Relation{}
	s.AddVanishedRelations()
}

func TestNextAfterForce(t *testing.T) {
	failed := hook.ForRelation(hook.Changed, db, "mysql/0")
	checkAll(t, []nextCase{
		{"a relation vanished: its members depart", idle, vanished, Enqueue{[]hook.Arrival{{Relation: 1, Member: "mysql/0", Known: true,
			State: state.MemberState{State: hook.In, Pending: hook.Departed, Place: 5, Version: 2, Seen: 2}}}}},
		{"they have: it breaks", idle, func(s *Snapshot) { vanished(s); s.Uniter.Members = nil }, runIn(hook.Broken, "")},
		{"it was in error: that counts as done", idle, func(s *Snapshot) {
			vanished(s)
			s.Uniter.Members = nil
			rs := s.Uniter.Relations[1]
			rs.State, rs.Failure = state.RelationError, failureOf(failed, noon.Add(1))
			s.Uniter.Relations[1] = rs
		}, Resolve{1}},
		{"it is broken: the unit leaves", idle, func(s *Snapshot) {
			vanished(s)
			s.Uniter.Members = nil
			rs := s.Uniter.Relations[1]
			rs.State = state.RelationEnded
			s.Uniter.Relations[1] = rs
		}, LeaveRelation{1}},
	})
}

func TestNextWhileStarted(t *testing.T) {
	checkAll(t, []nextCase{
		{"idle", idle, nil, Wait{noon.Add(4 * time.Minute)}},
		{"idle without update-status", idle, func(s *Snapshot) { s.StatusInterval = 0 }, Wait{}},
		{"idle for long", idle, func(s *Snapshot) { s.LastHook = noon.Add(-5 * time.Minute) }, run(hook.UpdateStatus)},
		{"configured", idle, func(s *Snapshot) { s.ConfigVersion = 4 }, run(hook.ConfigChanged)},
		{"restarted", idle, func(s *Snapshot) { s.Uniter.Workflow.ConfigOwed = true }, run(hook.ConfigChanged)},
		{"settings changed", idle, func(s *Snapshot) { s.Relations[1].Members[0].Version = 3 },
			Enqueue{[]hook.Arrival{{Relation: 1, Member: "mysql/0", Known: true,
				State: state.MemberState{State: hook.In, Pending: hook.Changed, Place: 5, Version: 3, Seen: 2}}}}},
		{"a member came while a hook runs", idle, func(s *Snapshot) {
			s.Running = true
			s.Uniter.Members = nil
		}, Enqueue{[]hook.Arrival{{Relation: 1, Member: "mysql/0", State: state.MemberState{Pending: hook.Joined, Place: 5, Version: 2}}}}},
		{"a hook runs", idle, func(s *Snapshot) {
			s.Running = true
			member(s, state.MemberState{Pending: hook.Joined, Place: 1, Version: 2})
		}, Wait{}},
		{"joined is pending", idle, func(s *Snapshot) { member(s, state.MemberState{Pending: hook.Joined, Place: 1, Version: 2}) },
			runIn(hook.Joined, "mysql/0")},
		{"an agent died in a hook", idle, func(s *Snapshot) {
			s.Uniter.Op = &state.Op{Hook: hook.ForRelation(hook.Joined, db, "mysql/0")}
		}, RunHook{hook.ForRelation(hook.Joined, db, "mysql/0"), FromCrash}},
	})
}

func TestNextLeaves(t *testing.T) {
	relationDying := func(s *Snapshot) {
		r := s.Relations[1]
		r.Life = state.Dying
		s.Relations[1] = r
	}
	departs := Enqueue{[]hook.Arrival{{Relation: 1, Member: "mysql/0", Known: true,
		State: state.MemberState{State: hook.In, Pending: hook.Departed, Place: 5, Version: 2, Seen: 2}}}}
	without := func(s *Snapshot) {
		relationDying(s)
		s.Uniter.Members = nil
	}
	checkAll(t, []nextCase{
		{"the relation goes: its members depart", idle, relationDying, departs},
		{"the unit goes: its members depart", idle, dying, departs},
		{"a member vanished while the agent was down", idle, func(s *Snapshot) {
			s.Relations[1] = Relation{Relation: db, Life: state.Alive}
		}, departs},
		{"departed comes before broken", idle, func(s *Snapshot) {
			relationDying(s)
			member(s, state.MemberState{State: hook.In, Pending: hook.Departed, Place: 5})
		}, runIn(hook.Departed, "mysql/0")},
		{"broken is last", idle, without, runIn(hook.Broken, "")},
		{"broken once", idle, func(s *Snapshot) {
			without(s)
			s.Uniter.Relations[1] = state.RelationState{State: state.RelationEnded}
		}, LeaveRelation{1}},
		{"the relation is gone altogether", idle, func(s *Snapshot) {
			s.Relations, s.Uniter.Members = nil, nil
		}, LeaveRelation{1}},
		{"peers break last", idle, func(s *Snapshot) {
			dying(s)
			s.Uniter.Relations = map[int]state.RelationState{0: {State: state.RelationUp}, 1: {State: state.RelationUp}}
			s.Relations[0] = Relation{Relation: ring, Life: state.Alive}
			s.Uniter.Members = nil
		}, runIn(hook.Broken, "")},
		{"all left: stop", idle, func(s *Snapshot) {
			dying(s)
			s.Uniter.Relations, s.Uniter.Members = nil, nil
		}, run(hook.Stop)},
		{"a broken that failed holds up the stop", idle, func(s *Snapshot) {
			dying(s)
			s.Uniter.Members = nil
			s.RetryHooks = false
			s.Uniter.Relations[1] = state.RelationState{State: state.RelationError, Failure: failureOf(hook.ForRelation(hook.Broken, db, ""), noon)}
		}, Wait{}},
		{"stopped", idle, func(s *Snapshot) { s.Uniter.Workflow.State = stateStopped }, Finish{}},
		{"dead", idle, func(s *Snapshot) { s.Unit.Life = state.Dead }, Finish{}},
		{"gone", func() Snapshot { return Snapshot{Gone: true} }, nil, Finish{}},
	})
}

func TestNextAfterFailures(t *testing.T) {
	later := noon.Add(5 * time.Second)
	unitFailed := func(kind string, at time.Time) func(s *Snapshot) {
		return func(s *Snapshot) {
			s.Uniter.Workflow.State, s.Uniter.Workflow.Failure = ErrorState(kind), failureOf(hook.ForUnit(kind), at)
		}
	}
	changed := hook.ForRelation(hook.Changed, db, "mysql/0")
	relationFailed := func(at time.Time) func(s *Snapshot) {
		return func(s *Snapshot) {
			s.Uniter.Relations[1] = state.RelationState{State: state.RelationError, Failure: failureOf(changed, at)}
		}
	}
	and := func(fs ...func(s *Snapshot)) func(s *Snapshot) {
		return func(s *Snapshot) {
			for _, f := range fs {
				f(s)
			}
		}
	}
	manual := func(s *Snapshot) { s.RetryHooks = false }
	answer := func(r state.Resolved) func(s *Snapshot) { return func(s *Snapshot) { s.Unit.Resolved = r } }
	relationAnswer := func(r state.Resolved) func(s *Snapshot) {
		return func(s *Snapshot) { s.Unit.ResolvedRelations = map[int]state.Resolved{1: r} }
	}
	pending := func(s *Snapshot) {
		member(s, state.MemberState{State: hook.In, Pending: hook.Changed, Place: 1, Version: 2})
	}
	checkAll(t, []nextCase{
		{"nothing runs in a unit's error", idle, and(unitFailed(hook.Start, later), pending), Wait{later}},
		{"hooks queue all the same", idle, and(unitFailed(hook.Start, later), func(s *Snapshot) { s.Relations[1].Members[0].Version = 3 }),
			Enqueue{[]hook.Arrival{{Relation: 1, Member: "mysql/0", Known: true,
				State: state.MemberState{State: hook.In, Pending: hook.Changed, Place: 5, Version: 3, Seen: 2}}}}},
		{"it is retried when due", idle, unitFailed(hook.ConfigChanged, noon), RunHook{hook.ForUnit(hook.ConfigChanged), FromFailure}},
		{"but not where hooks are not", idle, and(unitFailed(hook.Start, noon), manual), Wait{}},
		{"resolved", idle, and(unitFailed(hook.Start, later), answer(state.ResolvedDone)), Resolve{state.NoRelation}},
		{"to be retried", idle, and(unitFailed(hook.Start, later), manual, answer(state.ResolvedRetry)), RunHook{hook.ForUnit(hook.Start), FromFailure}},
		{"dying in install-error", idle, and(dying, unitFailed(hook.Install, later), func(s *Snapshot) { s.Uniter.Relations = nil }), Finish{}},
		{"nothing of a relation in error runs", idle, and(relationFailed(later), pending), Wait{later}},
		{"the status goes on", idle, and(relationFailed(noon.Add(time.Hour)), pending, func(s *Snapshot) { s.LastHook = noon.Add(-time.Hour) }), run(hook.UpdateStatus)},
		{"the relation's hook is retried when due", idle, relationFailed(noon), RunHook{changed, FromFailure}},
		{"the relation is resolved", idle, and(relationFailed(later), relationAnswer(state.ResolvedDone)), Resolve{1}},
		{"the relation is to be retried", idle, and(relationFailed(later), relationAnswer(state.ResolvedRetry)), RunHook{changed, FromFailure}},
		{"another relation is not stopped", idle, and(relationFailed(later), func(s *Snapshot) {
			s.Uniter.Relations[0] = state.RelationState{State: state.RelationUp}
			s.Relations[0] = Relation{Relation: ring, Life: state.Alive, Members: []state.Member{{Unit: "blog/1", Version: 1}}}
			s.Uniter.Members[0] = map[string]state.MemberState{"blog/1": {Pending: hook.Joined, Place: 7, Version: 1}}
		}), RunHook{hook.ForRelation(hook.Joined, ring, "blog/1"), FromQueue}},
	})
}

func TestArrivalsComeInBatches(t *testing.T) {
	s := idle()
	s.Uniter.Members = nil
	r := s.Relations[1]
	r.Members = nil
	for range 200 {
		r.Members = append(r.Members, state.Member{Unit: "mysql/" + string(rune('0'+len(r.Members)%10)) + string(rune('0'+len(r.Members)/10%10)), Version: 1})
	}
	s.Relations[1] = r
	e, ok := Next(s).(Enqueue)
	if !ok || len(e.Arrivals) != MaxArrivals {
		t.Errorf("got %v, want %d arrivals at a time", Next(s), MaxArrivals)
	}
}

func TestWorkflow(t *testing.T) {
	w := state.Workflow{}
	for _, step := range []struct {
		kind string
		want state.Workflow
	}{
		{hook.Install, state.Workflow{State: stateInstalled, ConfigOwed: true, ResourcesVersion: 3}},
		{hook.ConfigChanged, state.Workflow{State: stateInstalled, ConfigVersion: 3, ResourcesVersion: 3}},
		{hook.Start, state.Workflow{State: stateStarted, ConfigVersion: 3, NextPlace: firstPlace, ResourcesVersion: 3}},
		{hook.ConfigChanged, state.Workflow{State: stateStarted, ConfigVersion: 3, NextPlace: firstPlace, ResourcesVersion: 3}},
		{hook.UpdateStatus, state.Workflow{State: stateStarted, ConfigVersion: 3, NextPlace: firstPlace, ResourcesVersion: 3}},
		{hook.Stop, state.Workflow{State: stateStopped, ConfigVersion: 3, NextPlace: firstPlace, ResourcesVersion: 3}},
	} {
		w = WithHookDone(w, hook.ForUnit(step.kind), 3)
		if diff := cmp.Diff(step.want, w); diff != "" {
			t.Errorf("after %s: %s", step.kind, diff)
		}
	}
}

// TestNextTogether checks that an arrival and the hook that follows it begin in one step. If no hook
// follows, the arrival is queued alone.
func TestNextTogether(t *testing.T) {
	arrive := func(change func(s *Snapshot)) Snapshot {
		s := idle()
		r := s.Relations[1]
		r.Members = append(slices.Clone(r.Members), state.Member{Unit: "mysql/7", Version: 1})
		s.Relations[1] = r
		change(&s)
		return s
	}
	for _, tc := range []struct {
		name string
		s    Snapshot
		want string
	}{
		{"a member comes", arrive(func(*Snapshot) {}), "run db-relation-joined (queue), 1 queued"},
		{"while a hook runs", arrive(func(s *Snapshot) { s.Running = true }), "enqueue 1 entries, 0 queued"},
		{"nobody comes", idle(), "wait, 0 queued"},
		{"compared already", arrive(func(s *Snapshot) { s.Uncompared = Members{} }), "wait, 0 queued"},
		{"the configuration changes, too", arrive(func(s *Snapshot) { s.ConfigVersion++ }), "run config-changed (workflow), 1 queued"},
		{"the agent died in a hook", arrive(func(s *Snapshot) { s.Uniter.Op = &state.Op{Hook: hook.ForUnit(hook.ConfigChanged)} }), "enqueue 1 entries, 0 queued"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := len(tc.s.Uniter.Members[1])
			tc.s.StatusInterval = 0
			next, after := NextTogether(tc.s)
			if got := fmt.Sprintf("%s, %d queued", next, len(after.Queued)); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			if len(tc.s.Uniter.Members[1]) != before {
				t.Error("the snapshot has changed")
			}
		})
	}
}
