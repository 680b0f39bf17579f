package decide

import (
	"testing"

	"bijou/agent/hook"
	"bijou/state"
)

// creates returns a unit whose charm has a relation-created hook for each of its two relations: one
// with mysql and one among peers.
func creates() Snapshot {
	s := fresh()
	workflow(stateInstalled)(&s)
	s.Hooks = CharmHooks{Charm: charmURL, CreatedIn: []string{"db", "ring"}}
	s.Relations[0] = Relation{Relation: ring, Life: state.Alive}
	s.Uniter.Relations = map[int]state.RelationState{}
	return s
}

// created returns the relation-created hook of a relation.
func created(r hook.Relation) Step {
	return RunHook{hook.ForRelation(hook.Created, r, ""), FromWorkflow}
}

// owing is the state of a relation that the unit has entered and whose relation-created hook must still run.
var owing = state.RelationState{State: state.RelationUp, CreatedOwed: true}

func TestNextRelationCreated(t *testing.T) {
	in := func(relations map[int]state.RelationState) func(*Snapshot) {
		return func(s *Snapshot) { s.Uniter.Relations = relations }
	}
	up := state.RelationState{State: state.RelationUp}
	failed := owing
	failed.Failure = failureOf(hook.ForRelation(hook.Created, db, ""), noon.Add(60e9))
	type relations = map[int]state.RelationState
	checkAll(t, []nextCase{
		{"install comes first", creates, workflow(""), run(hook.Install)},
		{"installed: relations that are there are entered", creates, nil, EnterRelation{db}},
		{"and heard of", creates, in(relations{1: owing}), created(db)},
		{"peers after the others", creates, in(relations{1: up}), EnterRelation{ring}},
		{"before the leader's hook", creates, func(s *Snapshot) {
			in(relations{0: owing, 1: up})(s)
			s.Leader, s.Hooks.LeaderElected = Leader{Unit: "blog/0"}, true
		}, created(ring)},
		{"then who leads", creates, func(s *Snapshot) {
			in(relations{0: up, 1: up})(s)
			s.Leader, s.Hooks.LeaderElected = Leader{Unit: "blog/0"}, true
		}, run(hook.LeaderElected)},
		{"then config-changed; who has come arrives after start", creates, func(s *Snapshot) {
			in(relations{0: up, 1: up})(s)
			s.Uniter.Workflow.ConfigOwed = true
		}, run(hook.ConfigChanged)},
		{"one that has failed does not stop the unit", creates, in(relations{0: up, 1: failed}), run(hook.Start)},
		{"of one that goes nothing is heard", creates, func(s *Snapshot) {
			in(relations{0: up, 1: owing})(s)
			s.Relations[1] = Relation{Relation: db, Life: state.Dying}
		}, run(hook.Start)},
		{"a charm without the hook enters after start", creates, func(s *Snapshot) { s.Hooks.CreatedIn = nil }, run(hook.Start)},
		{"a relation whose hook it lacks is entered after start", creates, func(s *Snapshot) {
			in(relations{0: up})(s)
			s.Hooks.CreatedIn = []string{"ring"}
		}, run(hook.Start)},
		{"a dispatch file has every hook", creates, func(s *Snapshot) { s.Hooks = CharmHooks{Dispatch: true} }, EnterRelation{db}},
		{"once started: before any joined", idle, func(s *Snapshot) {
			s.Uniter.Relations[1] = owing
			member(s, state.MemberState{Pending: hook.Joined, Place: 4, Version: 2})
		}, created(db)},
		{"entered by an agent that did not know the hook", idle, func(s *Snapshot) { s.Hooks = CharmHooks{Dispatch: true} }, Wait{noon.Add(4 * 60e9)}},
	})
}

func TestNextRemove(t *testing.T) {
	has := func(s *Snapshot) { s.Hooks.Remove = true }
	gone := func(word string) func() Snapshot {
		return func() Snapshot {
			s := fresh()
			workflow(word)(&s)
			dying(&s)
			return s
		}
	}
	checkAll(t, []nextCase{
		{"stopped", gone(stateStopped), nil, Finish{}},
		{"stopped, with a remove hook", gone(stateStopped), has, run(hook.Remove)},
		{"removed", gone(stateRemoved), has, Finish{}},
		{"remove has failed", gone("remove-error"), func(s *Snapshot) {
			has(s)
			s.Uniter.Workflow.Failure = failureOf(hook.ForUnit(hook.Remove), noon.Add(60e9))
		}, Wait{noon.Add(60e9)}},
	})
	if w := WithHookDone(state.Workflow{State: stateStopped}, hook.ForUnit(hook.Remove), 0); w.State != stateRemoved {
		t.Errorf("remove is done: %+v", w)
	}
}

func TestRelationCreatedLeavesTheWorkflow(t *testing.T) {
	h := hook.ForRelation(hook.Created, db, "")
	if word := StateAfter(h, state.Workflow{State: stateInstalled}); word != stateInstalled {
		t.Errorf("before start: got %q", word)
	}
	if word := StateAfter(h, state.Workflow{State: stateStarted, NextPlace: 4}); word != stateStarted {
		t.Errorf("after start: got %q", word)
	}
}

func TestHooksOfACharm(t *testing.T) {
	h := NewCharmHooks(charmURL, state.Charm{Hooks: []string{"db-relation-changed", "db-relation-created", "leader-elected"}}, nil)
	if !h.HasCreated("db") || h.HasCreated("web") || h.Remove || !h.LeaderElected || h.LeaderSettings {
		t.Errorf("by its files: %+v", h)
	}
	h = NewCharmHooks(charmURL, state.Charm{HasDispatch: true}, nil)
	if !h.HasCreated("db") || !h.Remove || !h.LeaderElected || !h.LeaderSettings {
		t.Errorf("with a dispatch file: %+v", h)
	}
}
