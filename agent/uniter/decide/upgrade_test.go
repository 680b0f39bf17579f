package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/agent/hook"
	"bijou/state"
)

const newerURL = "local:jammy/blog-2"

// behind changes the unit so that its service has been upgraded to newerURL.
func behind(mark state.Upgrade, changes ...func(s *Snapshot)) func(s *Snapshot) {
	return func(s *Snapshot) {
		mark.Charm = newerURL
		s.Charm, s.Upgrade = newerURL, mark
		for _, change := range changes {
			change(s)
		}
	}
}

// failing puts the unit into an error state that nothing resolves before noon.
func failing(word, kind string) func(s *Snapshot) {
	return func(s *Snapshot) {
		s.Uniter.Workflow.State = word
		s.Uniter.Workflow.Failure = failureOf(hook.ForUnit(kind), noon.Add(1))
		s.Uniter.Workflow.Failure.Charm = charmURL
	}
}

// deploying changes the unit so that its agent has died during the deployment of newerURL.
func deploying(s *Snapshot) { s.Uniter.Workflow.Deploying = newerURL }

func owed(s *Snapshot) { s.Uniter.Workflow.UpgradeOwed = true }

func TestNextUpgrade(t *testing.T) {
	force := state.Upgrade{Force: true}
	checkAll(t, []nextCase{
		{"started", idle, behind(state.Upgrade{}), DeployCharm{newerURL}},
		{"skipped", idle, behind(state.Upgrade{Skip: []string{"blog/0"}}, func(s *Snapshot) { s.StatusInterval = 0 }), Wait{}},
		{"a hook runs: it ends first", idle, behind(force, func(s *Snapshot) { s.Running = true }), Wait{}},
		{"installed: before it is started", fresh, behind(state.Upgrade{}, workflow(stateInstalled)), DeployCharm{newerURL}},
		{"not yet installed: the service's charm of this moment", fresh, behind(state.Upgrade{}, workflow("")), DeployCharm{newerURL}},
		{"in error: later", idle, behind(state.Upgrade{}, failing("configure-error", hook.ConfigChanged)), Wait{noon.Add(1)}},
		{"in error, forced: at once", idle, behind(force, failing("configure-error", hook.ConfigChanged)), DeployCharm{newerURL}},
		{"in error, forced, but skipped", idle, behind(state.Upgrade{Force: true, Skip: []string{"blog/0"}}, failing("start-error", hook.Start)), Wait{noon.Add(1)}},
		{"leaving: with what it has", idle, behind(state.Upgrade{}, dying, func(s *Snapshot) {
			s.Uniter.Relations, s.Uniter.Members = nil, nil
		}), run(hook.Stop)},
		{"an agent died in a swap: it is done again", idle, behind(state.Upgrade{}, deploying), DeployCharm{newerURL}},
		{"and the operator went back meanwhile", idle, deploying, DeployCharm{charmURL}},
		{"and the unit is to leave meanwhile: with what it has", idle, behind(state.Upgrade{}, deploying, dying, func(s *Snapshot) {
			s.Uniter.Relations, s.Uniter.Members = nil, nil
		}), DeployCharm{charmURL}},
		{"and the mark is not for units in error any more", idle, behind(state.Upgrade{}, deploying, failing("start-error", hook.Start)), DeployCharm{charmURL}},
		{"and the unit was forced", idle, behind(force, deploying, failing("start-error", hook.Start)), DeployCharm{newerURL}},
		{"and nothing was installed", fresh, deploying, DeployCharm{charmURL}},
		{"and nothing was installed in a unit that leaves", fresh, func(s *Snapshot) { deploying(s); dying(s) }, Finish{}},
		{"owed: before what is queued", idle, func(s *Snapshot) {
			owed(s)
			member(s, state.MemberState{State: hook.In, Pending: hook.Changed, Place: 4, Version: 2})
		}, run(hook.UpgradeCharm)},
		{"owed: before config-changed", idle, func(s *Snapshot) { owed(s); s.Uniter.Workflow.ConfigOwed = true }, run(hook.UpgradeCharm)},
		{"a resource was given", idle, func(s *Snapshot) { s.Resources = 2; s.Uniter.Workflow.ResourcesVersion = 1 }, run(hook.UpgradeCharm)},
		{"a resource was given to one that leaves", idle, func(s *Snapshot) {
			s.Resources, s.Uniter.Relations, s.Relations = 2, nil, nil
			dying(s)
		}, run(hook.Stop)},
		{"a resource was given before install", fresh, func(s *Snapshot) { s.Resources, s.Uniter.Workflow.Charm = 2, charmURL }, run(hook.Install)},
		{"owed, but in error", idle, func(s *Snapshot) { owed(s); failing("configure-error", hook.ConfigChanged)(s) }, Wait{noon.Add(1)}},
		{"owed, and a newer one comes: straight to it", idle, behind(state.Upgrade{}, owed), DeployCharm{newerURL}},
	})
}

func TestUpgradeWorkflow(t *testing.T) {
	upgrade := hook.ForUnit(hook.UpgradeCharm)
	started := state.Workflow{State: stateStarted, Charm: charmURL, ConfigVersion: 3, NextPlace: 5}
	for _, tc := range []struct {
		name string
		got  state.Workflow
		want state.Workflow
	}{
		{"deployed", WithCharm(started, newerURL),
			state.Workflow{State: "started", Charm: newerURL, ConfigVersion: 3, NextPlace: 5, UpgradeOwed: true}},
		{"put back after a swap that is not wanted any more", WithCharm(state.Workflow{State: "started", Charm: charmURL, Deploying: newerURL}, charmURL),
			state.Workflow{State: "started", Charm: charmURL}},
		{"put back while its upgrade-charm is owed", WithCharm(state.Workflow{State: "started", Charm: charmURL, UpgradeOwed: true, Deploying: newerURL}, charmURL),
			state.Workflow{State: "started", Charm: charmURL, UpgradeOwed: true}},
		{"the first charm", WithCharm(state.Workflow{}, charmURL), state.Workflow{Charm: charmURL}},
		{"install failed: it is run again, with the new files",
			WithCharm(state.Workflow{State: "install-error", Charm: charmURL, Failure: failureOf(hook.ForUnit(hook.Install), noon)}, newerURL),
			state.Workflow{State: "install-error", Charm: newerURL, Failure: failureOf(hook.ForUnit(hook.Install), noon)}},
		{"done: config-changed is next", WithHookDone(WithCharm(started, newerURL), upgrade, 3),
			state.Workflow{State: "started", Charm: newerURL, ConfigVersion: 3, NextPlace: 5, ConfigOwed: true, ConfigOwedFirst: true, ResourcesVersion: 3}},
		{"done before start", WithHookDone(state.Workflow{State: "installed", UpgradeOwed: true}, upgrade, 0), state.Workflow{State: "installed", ConfigOwed: true, ConfigOwedFirst: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.name, diff)
			}
		})
	}
}
