package juju

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

func sampleStatus() status.Status {
	return status.Status{
		Machines: map[string]status.Machine{
			"0":  {State: state.MachineRunning, DNSName: "127.0.0.1", InstanceID: "localhost", Series: "noble"},
			"2":  {State: state.MachineError, Series: "noble", Error: "no room\nat all"},
			"10": {State: state.MachinePending, Series: "noble"},
		},
		Services: map[string]status.Service{
			"blog": {Charm: "local:noble/wordpress-1", Version: "6.4.1", Life: state.Dying, Units: map[string]status.Unit{
				"blog/2": {State: "started", Leader: true, Machine: "0", Workload: &status.Workload{Current: "active", Message: "fine", Since: time.Date(2020, 2, 29, 12, 0, 0, 0, time.Local)}, OpenPorts: []string{"80/tcp", "icmp"}},
				"blog/10": {State: "start-error", Machine: "0", Info: &status.UnitStateInfo{
					Hook: "start", Message: "exit code 1", NextRetry: time.Date(2096, 1, 1, 12, 30, 0, 0, time.Local)}},
			}},
			"db": {Charm: "local:noble/mysql-3", Exposed: true, Units: map[string]status.Unit{"db/0": {State: "pending", Machine: "10"}}},
		},
		Relations: map[string]status.Relation{
			"relation-0": {Interface: "ring", Services: map[string]status.RelationEnd{"db": {Name: "ring", Role: charm.Peers, State: "up"}}},
			"relation-3": {Interface: "mysql", Scope: charm.Global, Services: map[string]status.RelationEnd{
				"db": {Name: "server", Role: charm.Provides, State: "up"},
				"blog": {Name: "db", Role: charm.Consumes, State: "error", Units: map[string]status.RelationUnit{
					"blog/2": {State: "error", Message: "db-relation-changed: exit code 1", NextRetry: time.Date(2026, 1, 1, 12, 30, 0, 0, time.Local)}}},
			}},
		},
	}
}

// TestStatusScreens compares the screen with captures in testdata/status. Some captures are uncut, and
// some are for terminals, where each line must fit. BIJOU_TEST_CAPTURES=write writes them.
func TestStatusScreens(t *testing.T) {
	heading := []string{"default", "0.1.0", "2026-01-01 12:00:00", "etcd://10.1.2.3:2379,10.1.2.4:2379,10.1.2.5:2379/bijou/default"}
	trouble := sampleStatus()
	trouble.Services["blog"].Units["blog/2"].Workload.Message = "準備完了 " + strings.Repeat("fine ", 40) + "indeed"
	failed := trouble.Services["blog"].Units["blog/10"]
	failed.Info.Stderr = "KeyError: 'database' is not among the keys of this mapping, nor in the environment of the hook"
	failed.Info.See = "juju debug-log --unit blog/10"

	for name, s := range map[string]status.Status{"trouble": trouble, "calm": calmStatus()} {
		for _, width := range []int{0, 80, 120, 200} {
			for _, wide := range []bool{false, true} {
				file := fmt.Sprintf("%s-%d.txt", name, width)
				if wide {
					file = "wide-" + file
				}
				t.Run(file, func(t *testing.T) {
					tables := statusTables{status: s, now: sampleNow(), wide: wide, width: width}
					if width > 0 {
						tables.heading = heading
					}
					var b strings.Builder
					if err := tables.write(&b); err != nil {
						t.Fatal(err)
					}

					checkCapture(t, filepath.Join("testdata", "status", file), b.String())
					for line := range strings.Lines(b.String()) {
						if columns := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); width > 0 && columns > width {
							t.Errorf("%d columns: %s", columns, line)
						}
					}
				})
			}
		}
	}
}

func sampleNow() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.Local) }

// calmStatus returns the status of an environment without problems.
func calmStatus() status.Status {
	said := func(message string, ago time.Duration) *status.Workload {
		return &status.Workload{Current: "active", Message: message, Since: sampleNow().Add(-ago)}
	}
	machines := map[string]status.Machine{}
	for i := range 4 {
		id := strconv.Itoa(i)
		machines[id] = status.Machine{State: state.MachineRunning, DNSName: "10.0.0.1" + id, InstanceID: "i-" + id, Series: "noble"}
	}

	return status.Status{
		Machines: machines,
		Services: map[string]status.Service{
			"postgresql": {Charm: "local:noble/postgresql-12", Version: "16.3", Units: map[string]status.Unit{
				"postgresql/0": {State: "started", Machine: "0", PublicAddress: "10.0.0.10", Leader: true, Workload: said("primary", 3*time.Minute), OpenPorts: []string{"5432/tcp"}},
				"postgresql/1": {State: "started", Machine: "1", PublicAddress: "10.0.0.11", Workload: said("replica of postgresql/0", 40*time.Second), OpenPorts: []string{"5432/tcp"}},
			}},
			"wordpress": {Charm: "local:noble/wordpress-1", Exposed: true, Units: map[string]status.Unit{
				"wordpress/0": {State: "started", Machine: "2", PublicAddress: "10.0.0.12", Leader: true, Workload: said("serving on port 8080", 5*time.Hour), OpenPorts: []string{"80/tcp", "443/tcp"}},
				"wordpress/1": {State: "started", Machine: "3", PublicAddress: "10.0.0.13", Workload: said("serving on port 8080", 300*time.Hour), Running: &state.RunningHook{Name: "update-status", Since: sampleNow().Add(-2 * time.Second)}},
			}},
			"quiet": {Charm: "local:noble/quiet-0", Units: map[string]status.Unit{"quiet/0": {State: "started", Machine: "0", PublicAddress: "10.0.0.10"}}},
		},
		Relations: map[string]status.Relation{
			"relation-0": {Interface: "postgresql-peers", Services: map[string]status.RelationEnd{"postgresql": {Name: "replicas", Role: charm.Peers, State: "up"}}},
			"relation-1": {Interface: "postgresql_client", Scope: charm.Global, Services: map[string]status.RelationEnd{
				"postgresql": {Name: "database", Role: charm.Provides, State: "up"}, "wordpress": {Name: "database", Role: charm.Consumes, State: "up"}}},
		},
	}
}

func TestTabularRelations(t *testing.T) {
	status := selectStatus(sampleStatus(), []string{"blog"})
	var b strings.Builder
	if err := (statusTables{status: status, relations: true}).write(&b); err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(b.String(), "RELATION")
	want := `    INTERFACE  SCOPE   ENDPOINT   ROLE      UNIT    STATE  MESSAGE
relation-3  mysql      global  blog:db    consumes  blog/2  error  db-relation-changed: exit code 1 (waits for its turn to be retried)
relation-3  mysql      global  db:server  provides  -       up
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDot(t *testing.T) {
	s := sampleStatus()
	db := s.Relations["relation-0"].Services["db"]
	db.Name = "ring\"\\x"
	s.Relations["relation-0"].Services["db"] = db
	tests := []struct {
		name   string
		status status.Status
		want   string
	}{
		{"all", s, `digraph model {
  node [shape=box];
  "blog" [color="red", label="blog\nlocal:noble/wordpress-1\n2 units", style="dashed"];
  "db" [label="db\nlocal:noble/mysql-3\n1 unit", peripheries="2"];
  "blog" -> "db" [color="red", label="relation-3\ndb - server"];
  "db" -> "db" [label="relation-0\nring\"\\x"];
}
`},
		{"one", selectStatus(s, []string{"blog/2"}), `digraph model {
  node [shape=box];
  "blog" [label="blog\nlocal:noble/wordpress-1\n1 unit", style="dashed"];
  "db" [label="db", style="dotted"];
  "blog" -> "db" [color="red", label="relation-3\ndb - server"];
}
`},
		{"nothing", status.Status{}, "digraph model {\n  node [shape=box];\n}\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := writeDot(&b, tt.status); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, b.String()); diff != "" {
				t.Error(tt.name, diff)
			}
		})
	}
}

func TestSelect(t *testing.T) {
	tests := []struct {
		globs     []string
		machines  []string
		services  []string
		units     []string
		relations []string
		unmatched []string
	}{
		{[]string{"db"}, []string{"10"}, []string{"db"}, []string{"db/0"}, []string{"relation-0", "relation-3"}, nil},
		{[]string{"blog/2"}, []string{"0"}, []string{"blog"}, []string{"blog/2"}, []string{"relation-3"}, nil},
		{[]string{"blog/*", "db"}, []string{"0", "10"}, []string{"blog", "db"}, []string{"blog/10", "blog/2", "db/0"}, []string{"relation-0", "relation-3"}, nil},
		{[]string{"*"}, []string{"0", "10"}, []string{"blog", "db"}, []string{"blog/10", "blog/2", "db/0"}, []string{"relation-0", "relation-3"}, nil},
		{[]string{"*/0"}, []string{"10"}, []string{"db"}, []string{"db/0"}, []string{"relation-0", "relation-3"}, nil},
		{[]string{"blog", "x*", "blog/2", "y"}, []string{"0"}, []string{"blog"}, []string{"blog/10", "blog/2"}, []string{"relation-3"}, []string{"x*", "y"}},
		{[]string{"x*"}, nil, nil, nil, nil, []string{"x*"}},
		{nil, []string{"0", "10", "2"}, []string{"blog", "db"}, []string{"blog/10", "blog/2", "db/0"}, []string{"relation-0", "relation-3"}, nil},
	}
	for _, tt := range tests {
		s := selectStatus(sampleStatus(), tt.globs)
		var units []string
		for _, sv := range s.Services {
			units = slices.AppendSeq(units, maps.Keys(sv.Units))
		}
		slices.Sort(units)
		for what, pair := range map[string][2][]string{
			"machines": {tt.machines, slices.Sorted(maps.Keys(s.Machines))}, "services": {tt.services, slices.Sorted(maps.Keys(s.Services))},
			"units": {tt.units, units}, "relations": {tt.relations, slices.Sorted(maps.Keys(s.Relations))}, "unmatched": {tt.unmatched, s.Unmatched},
		} {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				t.Errorf("%q: %s: %s", tt.globs, what, diff)
			}
		}
	}
	if checkGlobs([]string{"["}) == nil {
		t.Error("a broken pattern was accepted")
	}
}

// TestSelectShrinksRelations checks that a relation shows only the selected units at endpoints of selected
// applications, and all units at its other endpoints.
func TestSelectShrinksRelations(t *testing.T) {
	units := func(names ...string) map[string]status.RelationUnit {
		all := map[string]status.RelationUnit{}
		for i, name := range names {
			all[name] = status.RelationUnit{State: []string{state.RelationUp, state.RelationError}[i]}
		}
		return all
	}
	s := status.Status{
		Services: map[string]status.Service{
			"a": {Units: map[string]status.Unit{"a/0": {}, "a/1": {}}},
			"b": {Units: map[string]status.Unit{"b/0": {}, "b/1": {}}},
		},
		Relations: map[string]status.Relation{"relation-0": {Services: map[string]status.RelationEnd{
			"a": {State: state.RelationError, Units: units("a/0", "a/1")},
			"b": {State: state.RelationError, Units: units("b/0", "b/1")},
		}}},
	}
	got := selectStatus(s, []string{"a/0"}).Relations["relation-0"].Services
	want := map[string]status.RelationEnd{
		"a": {State: state.RelationUp, Units: units("a/0")},
		"b": {State: state.RelationError, Units: units("b/0", "b/1")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
