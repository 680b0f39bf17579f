package decide

import (
	"testing"

	"bijou/agent/hook"
	"bijou/state"
)

// led returns an idle unit whose charm has both leadership hooks, and whose service has that leader.
func led(leader string) func() Snapshot {
	return func() Snapshot {
		s := idle()
		s.Leader = Leader{Unit: leader}
		s.Hooks = CharmHooks{Charm: charmURL, LeaderElected: true, LeaderSettings: true}
		return s
	}
}

func TestNextAboutLeadership(t *testing.T) {
	nothing := Wait{noon.Add(4 * 60e9)}
	elected := func(s *Snapshot) { s.Uniter.Workflow.ToldElected = true }
	news := func(s *Snapshot) { s.Leader.Version = 2 }
	both := func(changes ...func(*Snapshot)) func(*Snapshot) {
		return func(s *Snapshot) {
			for _, change := range changes {
				change(s)
			}
		}
	}
	checkAll(t, []nextCase{
		{"nobody leads", led(""), news, nothing},
		{"it was elected", led("blog/0"), nil, run(hook.LeaderElected)},
		{"it knows", led("blog/0"), elected, nothing},
		{"the leader's own settings", led("blog/0"), both(elected, news), nothing},
		{"another leads", led("blog/1"), nil, nothing},
		{"the leader has news", led("blog/1"), news, run(hook.LeaderSettingsChanged)},
		{"it has seen them", led("blog/1"), both(news, func(s *Snapshot) { s.Uniter.Workflow.LeaderVersion = 2 }), nothing},
		{"it was deposed", led("blog/1"), elected, run(hook.LeaderSettingsChanged)},
		{"it was deposed, and nobody else leads yet", led(""), elected, nothing},
		{"deposed, without a hook to hear it", led("blog/1"), both(elected, func(s *Snapshot) { s.Hooks.LeaderSettings = false }), run(hook.LeaderSettingsChanged)},
		{"elected, without a hook to hear it", led("blog/0"), func(s *Snapshot) { s.Hooks.LeaderElected = false }, nothing},
		{"a charm without such hooks", led("blog/0"), func(s *Snapshot) { s.Hooks = CharmHooks{} }, nothing},
		{"nobody leads yet: install waits", led(""), workflow(""), Wait{}},
		{"not before install", led("blog/0"), workflow(""), run(hook.Install)},
		{"before the first config-changed", led("blog/0"), both(workflow(stateInstalled), func(s *Snapshot) { s.Uniter.Workflow.ConfigOwed = true }), run(hook.LeaderElected)},
		{"after the config-changed of a new charm", led("blog/0"), func(s *Snapshot) { s.Uniter.Workflow.ConfigOwedFirst = true }, run(hook.ConfigChanged)},
		{"after that of a new charm that has not started", led("blog/0"), both(workflow(stateInstalled), func(s *Snapshot) { s.Uniter.Workflow.ConfigOwedFirst = true }), run(hook.ConfigChanged)},
		{"settings after the config-changed of a new charm", led("blog/1"), both(news, func(s *Snapshot) { s.Uniter.Workflow.ConfigOwedFirst = true }), run(hook.ConfigChanged)},
		{"not while something has failed", led("blog/0"), func(s *Snapshot) {
			s.Uniter.Workflow.Failure = &state.Failure{Hook: hook.ForUnit(hook.Start), RetryAt: noon.Add(60e9)}
		}, Wait{noon.Add(60e9)}},
		{"not when it goes", led("blog/0"), func(s *Snapshot) {
			dying(s)
			s.Uniter.Relations = nil
			s.Relations = nil
		}, run(hook.Stop)},
	})
}

func TestLeadershipHooksInTheWorkflow(t *testing.T) {
	before := state.Workflow{State: stateInstalled}
	w := WithHookDone(before, hook.ForUnit(hook.LeaderElected), 0)
	if w.State != stateInstalled || !w.ToldElected {
		t.Errorf("elected before start: %+v", w)
	}
	w.State, w.NextPlace = stateStarted, firstPlace
	w = WithHookDone(w, hook.ForUnit(hook.LeaderSettingsChanged), 7)
	if w.State != stateStarted || w.ToldElected || w.LeaderVersion != 7 {
		t.Errorf("deposed: %+v", w)
	}
}
