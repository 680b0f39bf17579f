package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bijou/state"
	"bijou/state/actions"
	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
)

// manual turns automatic retries off.
func (r *rig) manual() {
	off := "false"
	r.update(func(tx *state.Tx) error { return tx.SetEnvironment(map[string]*string{state.RetryHooks: &off}) })
}

func (r *rig) resolve(unit, relation string, retry bool) {
	r.t.Helper()
	r.update(func(tx *state.Tx) error { _, err := actions.SetResolved(tx, unit, relation, retry); return err })
}

// lonely deploys a charm without relations, with one unit.
func (r *rig) lonely(bodies map[string]string) {
	statetest.AddService(r.t, r.st, r.recorder(statetest.Meta("app", "provides: {}\n"), hooks(), bodies), 1)
}

// gate returns the body of a hook. The hook fails until the test calls open.
func (r *rig) gate(name string) (body string, open func()) {
	path := filepath.Join(r.t.TempDir(), name)
	return "[ -e " + path + " ] || exit 7", func() {
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestUnitErrorIsRetriedAndResolved(t *testing.T) {
	once(t, func(r *rig) {
		r.manual()
		body, open := r.gate("install")
		r.lonely(map[string]string{"install": body, "start": "exit 3"})
		r.start()
		r.awaitState("app/0", "install-error")
		if got := r.uniter("app/0").Workflow.Failure.Message; got != "exit code 7" {
			t.Errorf("the failure says %q", got)
		}
		r.resolve("app/0", "", true)
		r.eventually("it has failed twice", func() bool {
			f := r.uniter("app/0").Workflow.Failure
			return f != nil && f.Attempts == 2
		})
		open()
		r.resolve("app/0", "", true)
		r.awaitState("app/0", "start-error")
		r.resolve("app/0", "", false)
		r.awaitState("app/0", "started")
		want := []string{"install", "install", "install", "config-changed", "start"}
		if got := r.noted("app/0"); !slices.Equal(got, want) {
			t.Errorf("hooks that ran: %q, want %q", got, want)
		}
	})
}

func TestFailedHookIsRetriedByItself(t *testing.T) {
	need.Whole(t)
	once(t, func(r *rig) {
		body, open := r.gate("config")
		r.lonely(map[string]string{"config-changed": body})
		r.start()
		r.awaitState("app/0", "configure-error")
		if r.uniter("app/0").Workflow.Failure.RetryAt.IsZero() {
			t.Error("the next attempt is not due")
		}
		open()
		r.awaitState("app/0", "started")
	})
}

func TestRelationErrorStopsThatRelationOnly(t *testing.T) {
	once(t, func(r *rig) {
		r.manual()
		hub := statetest.Meta("hub", "provides:\n  link: wire\npeers:\n  ring: ring\n")
		leaf := statetest.Meta("leaf", "requires:\n  up: wire\n")
		body, open := r.gate("link")
		c := statetest.AddCharm(t, r.st, r.recorder(leaf, hooks("up"), nil))
		statetest.AddService(t, r.st, r.recorder(hub, hooks("link", "ring"), map[string]string{
			"link-relation-joined": `[ $JUJU_REMOTE_SERVICE != a ] || { relation-set lost=1; ` + body + `; }`,
		}), 1)
		statetest.AddServiceOf(t, r.st, c, "a", 1)
		statetest.AddServiceOf(t, r.st, c, "b", 1)
		bad := statetest.Relate(t, r.st, "hub:link", "a:up")
		statetest.Relate(t, r.st, "hub:link", "b:up")
		r.start()
		r.awaitNote("hub/0", "link-relation-changed b/0 [b/0]")
		r.eventually("the bad one is in error", func() bool {
			return r.uniter("hub/0").Relations[bad.ID].State == state.RelationError
		})
		if got := r.settings(bad.ID, "hub/0")["lost"]; got != "" {
			t.Error("a failed hook's setting was written")
		}
		if r.uniter("hub/0").Workflow.State != "started" {
			t.Error("the unit is in error, too")
		}
		// The member departs while the unit is in error: the departed hook is queued and does not run.
		r.update(func(tx *state.Tx) error { return tx.DestroyRelation(bad.ID) })
		r.eventually("the departure is queued", func() bool {
			return r.uniter("hub/0").Members[bad.ID]["a/0"].Pending == "relation-departed"
		})
		open()
		r.resolve("hub/0", "link:"+strings.TrimPrefix(bad.String(), "relation-"), true)
		r.awaitNote("hub/0", "link-relation-broken []")
		var got []string
		for _, note := range r.noted("hub/0") {
			if strings.Contains(note, " a/0") {
				got = append(got, strings.Fields(note)[0])
			}
		}
		want := []string{"link-relation-joined", "link-relation-joined", "link-relation-departed"}
		if !slices.Equal(got, want) {
			t.Errorf("hooks about a/0: %q, want %q", got, want)
		}
	})
}

func TestMissingAndUnexecutableHooks(t *testing.T) {
	once(t, func(r *rig) {
		r.manual()
		f := statetest.Meta("app", "provides: {}\n")
		r.recorder(f, []string{"install"}, map[string]string{"install": "chmod -x hooks/start; head -c 200000 /dev/zero | tr '\\0' x; echo; printf '\\xff\\n' >&2"})
		f["hooks/start"] = "#!/bin/sh\n"
		statetest.AddService(t, r.st, f, 1)
		r.start()
		r.awaitState("app/0", "start-error")
		if got := r.uniter("app/0").Workflow.Failure.Message; got != "hooks/start is not executable" {
			t.Errorf("the failure says %q", got)
		}
		r.eventually("its output is logged", func() bool { return strings.Contains(r.logs(), `app/0 ERROR install: \xff`) })
		data, err := os.ReadFile(filepath.Join(r.folder("app/0"), "hooks.log"))
		if err != nil || strings.Count(string(data), "x") < 200000 {
			t.Errorf("the file has not all of the output: %d bytes, %v", len(data), err)
		}
	})
}

func TestDyingInInstallErrorGoesAtOnce(t *testing.T) {
	once(t, func(r *rig) {
		r.manual()
		r.lonely(map[string]string{"install": "exit 1"})
		r.start()
		r.awaitState("app/0", "install-error")
		if err := r.st.DestroyService(t.Context(), "app"); err != nil {
			t.Fatal(err)
		}
		r.eventually("the service is gone", func() bool {
			services := statetest.Read(t, r.st, func(v *state.View) ([]state.Service, error) { return v.Services() })
			return len(services) == 0
		})
		if slices.Contains(r.noted("app/0"), "stop") {
			t.Error("stop ran for what was never installed")
		}
	})
}

func TestConfigurationThatNoHookHasSeenIsOwedOneAfterResolved(t *testing.T) {
	once(t, func(r *rig) {
		r.manual()
		body, open := r.gate("config")
		f := statetest.Meta("app", "provides: {}\n")
		f["config.yaml"] = "options:\n  title: {type: string, default: none}\n"
		statetest.AddService(t, r.st, r.recorder(f, hooks(), map[string]string{"config-changed": body + `; echo "title=$(config-get title)"`}), 1)
		r.start()
		r.awaitState("app/0", "configure-error")
		r.update(func(tx *state.Tx) error {
			_, err := tx.SetConfig("app", map[string]any{"title": "fixed"})
			return err
		})
		open()
		r.resolve("app/0", "", false)
		r.awaitState("app/0", "started")
		r.eventually("the new title is seen", func() bool { return strings.Contains(r.logs(), "title=fixed") })
	})
}
