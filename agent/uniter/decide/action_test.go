package decide

import (
	"testing"
	"time"

	"bijou/agent/hook"
	"bijou/state"
	"bijou/state/actions"
)

// backup is an action that waits.
func backup() *actions.Action {
	return &actions.Action{ID: 4, Unit: "blog/0", Name: "backup", Status: actions.Pending}
}

func TestNextOfWhatOperatorsAskFor(t *testing.T) {
	asked := hook.ForAction(*backup())
	runs := RunHook{asked, FromOperator}
	waiting := func(change func(s *Snapshot)) func(s *Snapshot) {
		return func(s *Snapshot) {
			s.Action = backup()
			if change != nil {
				change(s)
			}
		}
	}
	inFlight := func(cancel, cut bool) func(s *Snapshot) {
		return waiting(func(s *Snapshot) {
			s.Running, s.Ending, s.Action.Cancel = true, cut, cancel
			s.Uniter.Op = &state.Op{Hook: asked}
		})
	}
	interrupted := func(h state.Hook) func(s *Snapshot) {
		return waiting(func(s *Snapshot) {
			s.Running, s.Unit.Interrupt, s.Uniter.Op = true, "run-1", &state.Op{ID: "run-1", Hook: h}
		})
	}
	timed := func(h state.Hook, left time.Duration, holder string) func(s *Snapshot) {
		return func(s *Snapshot) {
			s.Running, s.HookTimeout, s.Begun = true, time.Minute, noon.Add(left-time.Minute)
			s.Uniter.Op = &state.Op{ID: "run-1", Hook: h, Holder: holder}
		}
	}
	inError := func(kind string) func(s *Snapshot) {
		return waiting(func(s *Snapshot) {
			s.Uniter.Workflow.State = ErrorState(kind)
			s.Uniter.Workflow.Failure = failureOf(hook.ForUnit(kind), noon.Add(1))
		})
	}
	checkAll(t, []nextCase{
		{"idle", idle, waiting(nil), runs},
		{"a command", idle, func(s *Snapshot) {
			s.Action = &actions.Action{ID: 5, Command: []string{"true"}}
		}, RunHook{hook.ForAction(actions.Action{ID: 5, Command: []string{"true"}}), FromOperator}},
		{"not before the charm is there", fresh, waiting(nil), DeployCharm{charmURL}},
		{"not before the install hook", fresh, waiting(workflow("")), run(hook.Install)},
		{"not before the start hook", fresh, waiting(workflow(stateInstalled)), run(hook.Start)},
		{"after a failed install hook", fresh, waiting(func(s *Snapshot) {
			workflow("install-error")(s)
			s.Uniter.Workflow.Failure = failureOf(hook.ForUnit(hook.Install), noon.Add(1))
		}), runs},
		{"in an error state", idle, inError(hook.ConfigChanged), runs},
		{"a retry that is due goes before it", idle, func(s *Snapshot) {
			inError(hook.ConfigChanged)(s)
			s.Uniter.Workflow.Failure.RetryAt = noon
		}, RunHook{hook.ForUnit(hook.ConfigChanged), FromFailure}},
		{"a new configuration goes before it", idle, waiting(func(s *Snapshot) { s.ConfigVersion = 4 }), run(hook.ConfigChanged)},
		{"it goes before relation hooks", idle, waiting(func(s *Snapshot) {
			member(s, state.MemberState{Pending: hook.Joined, Place: 1, Version: 2})
		}), runs},
		{"never beside a hook", idle, waiting(func(s *Snapshot) {
			s.Running = true
			s.Uniter.Op = &state.Op{Hook: hook.ForUnit(hook.ConfigChanged)}
		}), Wait{}},
		{"it runs", idle, inFlight(false, false), Wait{}},
		{"it runs and is to end", idle, inFlight(true, false), InterruptHook{ReasonCancelled}},
		{"it has been told to end", idle, inFlight(true, true), Wait{}},
		{"it is interrupted", idle, interrupted(asked), InterruptHook{whyInterrupted}},
		{"a hook is interrupted", idle, interrupted(hook.ForUnit(hook.Start)), InterruptHook{whyInterrupted}},
		{"another run was interrupted", idle, waiting(func(s *Snapshot) {
			interrupted(hook.ForUnit(hook.Start))(s)
			s.Uniter.Op.ID = "run-2"
		}), Wait{}},
		{"an interrupted hook's agent died", idle, waiting(func(s *Snapshot) {
			interrupted(hook.ForUnit(hook.Start))(s)
			s.Running = false
		}), FailCrashed{}},
		{"an interrupted hook is not retried", idle, func(s *Snapshot) {
			inError(hook.ConfigChanged)(s)
			s.Action, s.Uniter.Workflow.Failure.Interrupted, s.Uniter.Workflow.Failure.RetryAt = nil, true, time.Time{}
		}, Wait{}},
		{"a hook has time", idle, timed(hook.ForUnit(hook.Start), time.Second, ""), Wait{noon.Add(time.Second)}},
		{"a hook's time is over", idle, timed(hook.ForUnit(hook.Start), 0, ""), InterruptHook{"the hook had not ended after the hook-timeout of 1m0s"}},
		{"not that of what is held", idle, timed(hook.ForUnit(hook.Start), 0, "anna@host"), Wait{}},
		{"nor of what was asked for", idle, timed(asked, 0, ""), Wait{}},
		{"its agent died", idle, waiting(func(s *Snapshot) { s.Uniter.Op = &state.Op{Hook: asked} }), FailCrashed{}},
		{"a hook's agent died: that goes first", idle, waiting(func(s *Snapshot) {
			s.Uniter.Op = &state.Op{Hook: hook.ForUnit(hook.ConfigChanged)}
		}), RunHook{hook.ForUnit(hook.ConfigChanged), FromCrash}},
		{"a unit that goes still does it", idle, waiting(func(s *Snapshot) {
			dying(s)
			s.Uniter.Relations, s.Uniter.Members = nil, nil
		}), runs},
		{"one that has stopped does not", idle, waiting(workflow(stateStopped)), Finish{}},
	})
}
