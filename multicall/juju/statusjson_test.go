package juju

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

// TestJujuKeys checks that docs/reference/status.md lists exactly Juju's keys.
func TestJujuKeys(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/status.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "### Juju's keys\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for where, document := range map[string]any{
		"top": jujuStatus{}, "`model`": jujuModel{}, "a machine": jujuMachine{}, "an application": jujuApplication{},
		"its relation": jujuRelation{}, "a unit": jujuUnit{}, "a status": status.Info{},
		"a unit of `show-unit`": status.UnitDetail{}, "its relation there": status.RelationDetail{}, "a hook": status.HookRun{},
	} {
		_, row, found := strings.Cut(section, "\n| "+where+" | ")
		row, _, _ = strings.Cut(row, "\n")
		row = regexp.MustCompile(`\([^)]*\)`).ReplaceAllString(row, "")
		var said []string
		for _, key := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(row, -1) {
			said = append(said, key[1])
		}
		if diff := cmp.Diff(ownKeys(document), said); diff != "" || !found {
			t.Errorf("%s (-there is +the page has):\n%s", where, diff)
		}
	}
}

// ownKeys returns the keys of the struct's own fields, without those of embedded structs, in order.
func ownKeys(document any) (keys []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(document)) {
		if len(f.Index) == 1 && !f.Anonymous && f.IsExported() {
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "-" {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func TestUnitStatusOfJuju(t *testing.T) {
	says := &status.Workload{Current: "active", Message: "ready"}
	failed := &status.UnitStateInfo{Hook: "start", Message: "exit code 1"}
	down := &status.UnitStateInfo{Last: "started", Message: "its agent is gone"}
	broken := map[string]status.UnitRelation{"db": {State: "error", Relations: map[string]status.RelationUnit{
		"relation-0": {State: state.RelationError, Message: "db-relation-changed: exit code 1"},
	}}}
	for _, tc := range []struct {
		name            string
		unit            status.Unit
		workload, agent string
	}{
		{"new", status.Unit{State: state.UnitPending}, "waiting: waiting for its machine and agent", "allocating"},
		{"installing", status.Unit{State: state.UnitPending, Running: &state.RunningHook{Name: "install"}}, "maintenance: installing charm software", "executing: running install"},
		{"before start", status.Unit{State: "installed"}, "maintenance: installing charm software", "idle"},
		{"says nothing", status.Unit{State: state.UnitStarted}, "unknown", "idle"},
		{"says", status.Unit{State: state.UnitStarted, Workload: says}, "active: ready", "idle"},
		{"says a message only", status.Unit{State: state.UnitStarted, Workload: &status.Workload{Message: "m"}}, "unknown: m", "idle"},
		{"a hook has failed", status.Unit{State: "start-error", Workload: says, Info: failed}, "error: hook failed: start: exit code 1", "idle"},
		{"one of a relation", status.Unit{State: state.UnitStarted, Workload: says, Relations: broken}, "error: hook failed: relation-0: db-relation-changed: exit code 1", "idle"},
		{"down", status.Unit{State: state.UnitDown, Workload: says, Info: down}, "unknown: agent lost, see: juju status", "lost: its agent is gone"},
		{"in trouble", status.Unit{State: state.UnitStarted, Workload: says, Trouble: &state.Trouble{Message: "disk full"}}, "active: ready", "failed: disk full"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := func(s status.Info) string { return strings.TrimSuffix(s.Current+": "+s.Message, ": ") }
			if workload, agent := text(tc.unit.WorkloadInfo()), text(tc.unit.AgentInfo()); workload != tc.workload || agent != tc.agent {
				t.Errorf("%s: workload %q, agent %q", tc.name, workload, agent)
			}
		})
	}
}

func TestApplicationsOfJuju(t *testing.T) {
	unit := func(word string) status.Unit {
		return status.Unit{State: state.UnitStarted, Machine: "0", Workload: &status.Workload{Current: word, Message: word}}
	}
	principal := unit("active")
	principal.Subordinates = []string{"sub/0"}
	s := status.Status{
		Services: map[string]status.Service{
			"a":   {Charm: "local:noble/a-b-7", Series: "noble", Units: map[string]status.Unit{"a/0": principal, "a/1": unit("waiting"), "a/10": unit("blocked")}},
			"sub": {Charm: "local:bookworm/sub-0", Series: "bookworm", Principal: []string{"a"}, Units: map[string]status.Unit{"sub/0": unit("active")}},
			"led": {Charm: "local:noble/led-0", Status: &status.Workload{Current: "maintenance"}, Units: map[string]status.Unit{"led/0": unit("blocked")}},
			"one": {Charm: "local:noble/one-0"},
		},
		Relations: map[string]status.Relation{
			"relation-0": {Interface: "i", Scope: charm.Container, Services: map[string]status.RelationEnd{"a": {Name: "info"}, "sub": {Name: "host"}}},
			"relation-1": {Interface: "p", Scope: charm.Global, Services: map[string]status.RelationEnd{"a": {Name: "ring"}}},
			"relation-2": {Interface: "i", Scope: charm.Global, Services: map[string]status.RelationEnd{"a": {Name: "info"}, "gone": {Name: "x"}}},
		},
	}
	text, err := json.Marshal(newJujuStatus(s))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Applications map[string]struct {
			Charm  string                    `json:"charm"`
			Name   string                    `json:"charm-name"`
			Rev    int                       `json:"charm-rev"`
			Status status.Info               `json:"application-status"`
			Of     []string                  `json:"subordinate-to"`
			Ends   map[string][]jujuRelation `json:"relations"`
			Units  map[string]struct {
				State string                    `json:"state"`
				Subs  map[string]map[string]any `json:"subordinates"`
			} `json:"units"`
		} `json:"applications"`
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	a, sub := got.Applications["a"], got.Applications["sub"]
	ends := map[string][]jujuRelation{"info": {{"sub", "i", "container"}, {"gone", "i", "global"}}, "ring": {{"a", "p", "global"}}}
	if diff := cmp.Diff(ends, a.Ends); diff != "" {
		t.Errorf("relations (-want +got):\n%s", diff)
	}
	if a.Charm != "local:a-b-7" || a.Name != "a-b" || a.Rev != 7 || a.Status.Message != "blocked" {
		t.Errorf("a: %s", text)
	}
	if u := a.Units["a/0"]; len(a.Units) != 3 || u.State != "started" || u.Subs["sub/0"]["machine"] != "0" {
		t.Errorf("units of a: %s", text)
	}
	if sub.Units != nil || !slices.Equal(sub.Of, []string{"a"}) || sub.Status.Current != "active" {
		t.Errorf("sub: %s", text)
	}
	if led, one := got.Applications["led"].Status.Current, got.Applications["one"].Status.Current; led != "maintenance" || one != "unknown" {
		t.Errorf("led is %q, one %q", led, one)
	}
}

// TestNamesOfJuju checks Juju's other names for the same commands.
func TestNamesOfJuju(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("add-model", "bijou:admin/one", "local", "--controller", "bijou", "--constraints", "mem=1G", "--constraints", "cores=2")
	w.mustRun("bootstrap", "local", "two", "--no-switch")
	if got := w.mustRun("switch"); got != "one\n" {
		t.Errorf("in use is %q", got)
	}
	w.mustFail(2, "four", "bootstrap", "local", "three", "four")
	w.mustFail(2, "cannot name a model", "add-model", "else:admin/one")
	w.mustFail(2, "must be one of", "add-model", "three", "--controller", "else")
	if got := w.mustRun("show-model", "--format", "json", "admin/two"); !strings.HasPrefix(got, `{"two":{"name":"admin/two"`) {
		t.Errorf("model %s", got)
	}
	w.mustRun("switch", "admin/two")
	trivial := w.writeCharm("trivial", "")
	w.mustRun("deploy", trivial, "--model", "two", "--base", "ubuntu@24.04", "--config", "title=a=b", "--constraints", "mem=1G", "--constraints", "cores=2")
	if got := w.mustRun("config", "trivial", "title"); got != "a=b\n" {
		t.Errorf("title %q", got)
	}
	if got := w.mustRun("status", "--format", "json", "-m", "two"); !strings.Contains(got, `"charm":"local:noble/trivial-0"`) {
		t.Errorf("status %s", got)
	}
	w.mustFail(1, "nosuch", "deploy", trivial, "x", "--config", "nosuch=1")
	w.mustFail(2, "nosuch.yaml", "deploy", trivial, "x", "--config", "nosuch.yaml")
	w.mustFail(2, "key=value", "config", "trivial", "title=x", "else")
	w.mustFail(2, "no command given", "run", "trivial/0")
	w.mustFail(2, "--machine cannot be used with units", "exec", "trivial/0", "--machine", "0", "--", "true")
	w.mustRun("destroy-model", "bijou:admin/two", "--no-prompt", "--destroy-storage", "--force", "--no-wait", "--timeout", "5.0s")
	w.mustFail(1, "there is no model", "status", "--model", "two")
}
