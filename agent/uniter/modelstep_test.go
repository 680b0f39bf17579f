package uniter

import (
	"fmt"
	"strings"

	"bijou/agent/hook"
	"bijou/agent/uniter/decide"
	"bijou/hookenv/server"
	"bijou/state"
	"bijou/testscripts/kit/judge"
)

// step carries out the agent's next step. If a hook is running, it ends.
func (l *life) step() {
	ctx := l.t.Context()
	if l.flight != nil {
		l.end(l.pick(4) > 0)
		return
	}
	snap := l.snapshot()
	switch s := l.next(snap).(type) {
	case decide.Wait:
	case decide.DeployCharm:
		l.deploy(s.URL)
	case decide.EnterRelation:
		l.must(l.u.enterRelation(ctx, s.Relation, snap.Hooks))
	case decide.LeaveRelation:
		l.must(l.u.leaveRelation(ctx, s.Relation))
	case decide.Resolve:
		l.resolve(s.Relation, snap)
	case decide.RunHook:
		l.begin(s, snap)
	case decide.Finish:
		l.gone = true
		if !l.m.stopped && l.m.installed {
			l.t.Error("the unit is finished before its stop hook is done")
		}
	default:
		l.t.Fatal(errUnknownStep, s)
	}
}

// deploy replaces the charm, unless the agent dies during it.
func (l *life) deploy(url string) {
	w := l.workflow()
	l.update(func(tx *state.Tx) error {
		w.Deploying = url
		return tx.ChangeWorkflow("app/0", func(now *state.Workflow) { *now = w })
	})
	if l.pick(4) == 0 {
		l.crash()
		return
	}
	if w.Charm != url {
		_, failed := l.m.failed[state.NoRelation]
		l.m.upgrade = l.m.installed || failed && l.m.failed[state.NoRelation].Kind != hook.Install
	}
	l.update(func(tx *state.Tx) error {
		return joinErrors(tx.SetUnitCharm("app/0", url), tx.ChangeWorkflow("app/0", func(now *state.Workflow) { *now = decide.WithCharm(w, url) }))
	})
}

func joinErrors(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (l *life) workflow() (w state.Workflow) {
	s := l.snapshot()
	return s.Uniter.Workflow
}

// begin starts a hook.
func (l *life) begin(s decide.RunHook, snap decide.Snapshot) {
	if s.From != decide.FromCrash {
		if why := l.m.may(s.Hook, s.From); why != "" {
			l.t.Errorf("%s of %q begins (%s): %s", s.Hook.Name, s.Hook.RemoteUnit, s.From, why)
		}
	}
	op := state.Op{ID: server.NewClientID(), ClientID: server.NewClientID(), Hook: s.Hook, Expect: decide.StateAfter(s.Hook, snap.Uniter.Workflow), Version: subjectVersion(snap, s.Hook)}
	l.flight = &runningHook{op: op, from: s.From, entry: snap.Uniter.Members[s.Hook.Relation][hook.Member(s.Hook)]}
	l.begun, l.configured = false, l.m.configured
	if s.From == decide.FromQueue {
		l.m.begin(s.Hook, op.Version)
	}
	l.update(func(tx *state.Tx) error { return l.flight.recordBegin(tx, "app/0") })
	if l.pick(8) == 0 {
		l.crash()
		return
	}
	l.begun = true
	l.turn++
	var revision int
	_, after, _ := strings.Cut(snap.Uniter.Workflow.Charm, "app-")
	_, _ = fmt.Sscan(after, &revision)
	l.events = append(l.events, judge.Event{
		Event: judge.Begin, Hook: s.Hook.Name, PID: l.turn, Client: op.ClientID, Remote: s.Hook.RemoteUnit,
		ID: idOf(s.Hook), Members: strings.Join(hookMembers(snap, s.Hook), " "), Revision: revision,
	})
}

// idOf returns a hook's relation as recorder charms name it.
func idOf(h state.Hook) string {
	if h.Relation == state.NoRelation {
		return ""
	}
	return fmt.Sprintf("%s:%d", h.RelationName, h.Relation)
}

// end makes the running hook's process exit. The agent records that, unless it dies first.
func (l *life) end(well bool) {
	exit := 1
	if well {
		exit = 0
	}
	last := l.events[len(l.events)-1]
	l.events = append(l.events, judge.Event{Event: judge.Ended, Hook: last.Hook, PID: last.PID, Exit: exit})
	if l.pick(8) == 0 {
		l.crash()
		return
	}
	if l.settle(well); well {
		return
	}
	l.m.failed[l.flight.op.Hook.Relation] = l.flight.op.Hook
	l.flight = nil
}

// settle records the outcome.
func (l *life) settle(well bool) {
	op := l.flight.op
	l.update(func(tx *state.Tx) error {
		if err := clearOp(tx, "app/0", op); err != nil {
			return err
		}
		if !well {
			return recordFailure(tx, "app/0", op, newRunRecord(op, "exit code 1"), true)
		}
		return recordDone(tx, "app/0", op.Hook, op.Version)
	})
	if well {
		l.m.done(op.Hook, op.Version, l.configured)
		l.flight = nil
	}
}

// resolve treats a failed hook as done.
func (l *life) resolve(relation int, snap decide.Snapshot) {
	h, ok := l.m.failed[relation]
	if !ok {
		l.t.Errorf("the agent resolves relation %d, which has not failed", relation)
		return
	}
	l.must(l.u.resolveFailure(l.t.Context(), relation))
	l.events = append(l.events, judge.Event{Event: judge.Resolved, Hook: h.Name, Remote: h.RemoteUnit, ID: idOf(h)})
	seen := snap.Uniter.Members[h.Relation][h.RemoteUnit].Version
	if l.m.pending(h.Relation, h.RemoteUnit) >= 0 {
		seen = 0
	}
	owed := snap.Uniter.Workflow.Failure != nil && h.Kind == hook.UpgradeCharm && snap.Uniter.Workflow.Failure.Charm != snap.Uniter.Workflow.Charm
	l.m.done(h, seen, l.configured)
	l.m.upgrade = l.m.upgrade || owed
}

// crash kills the agent and starts another one. The new agent kills a hook that still runs, which then counts
// as failed, or finds that the hook has ended.
func (l *life) crash() {
	died := judge.Event{Event: judge.Died}
	if l.flight != nil {
		h := l.flight.op.Hook
		died.Hook, died.Client, died.Remote, died.ID = h.Name, l.flight.op.ClientID, h.RemoteUnit, idOf(h)
	}
	l.events = append(l.events, died)
	if l.flight != nil && l.begun && l.events[len(l.events)-2].Event == judge.Begin && l.pick(2) == 0 {
		l.settle(false)
		l.m.failed[l.flight.op.Hook.Relation] = l.flight.op.Hook
	}
	l.flight = nil
	l.u.cache.invalidate()
	w := l.workflow()
	if w.State == "" {
		return
	}
	w.ConfigOwed, l.m.configure = true, true
	l.update(func(tx *state.Tx) error { return tx.ChangeWorkflow("app/0", func(now *state.Workflow) { *now = w }) })
}
