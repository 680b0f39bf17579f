package juju

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/charm"
)

func sample() state.Status {
	return state.Status{
		Machines: map[string]state.MachineView{
			"0":  {State: state.MachineRunning, DNSName: "127.0.0.1", InstanceID: "localhost", Series: "noble"},
			"2":  {State: state.MachineError, Series: "noble", Error: "no room\nat all"},
			"10": {State: state.MachinePending, Series: "noble"},
		},
		Services: map[string]state.ServiceView{
			"blog": {Charm: "local:noble/wordpress-1", Life: state.Dying, Units: map[string]state.UnitView{
				"blog/2": {State: "started", Machine: "0", Workload: &state.StatusView{Current: "active", Message: "fine"}, OpenPorts: []string{"80/tcp", "icmp"}},
				"blog/10": {State: "start-error", Machine: "0", Info: &state.StateInfo{
					Hook: "start", Message: "exit code 1", NextRetry: time.Date(2026, 1, 1, 12, 30, 0, 0, time.Local)}},
			}},
			"db": {Charm: "local:noble/mysql-3", Exposed: true, Units: map[string]state.UnitView{"db/0": {State: "pending", Machine: "10"}}},
		},
		Relations: map[string]state.RelationView{
			"relation-0": {Interface: "ring", Services: map[string]state.RelationEnd{"db": {Name: "ring", Role: charm.Peers, State: "up"}}},
			"relation-3": {Interface: "mysql", Services: map[string]state.RelationEnd{
				"db": {Name: "server", Role: charm.Provides, State: "up"},
				"blog": {Name: "db", Role: charm.Consumes, State: "error", Units: map[string]state.RelationUnit{
					"blog/2": {State: "error", Message: "db-relation-changed: exit code 1"}}},
			}},
		},
	}
}

func TestTabular(t *testing.T) {
	var b strings.Builder
	if err := writeTabular(&b, sample(), false); err != nil {
		t.Fatal(err)
	}
	want := `MACHINE  STATE    ADDRESS    INSTANCE   SERIES  MESSAGE
2        error                          noble   no room
0        running  127.0.0.1  localhost  noble
10       pending                        noble

SERVICE  CHARM                    EXPOSED  UNITS  STATUS   MESSAGE
blog     local:noble/wordpress-1  no       2      (dying)
db       local:noble/mysql-3      yes      1

UNIT     STATE        WORKLOAD  MACHINE  ADDRESS  PORTS        MESSAGE
blog/10  start-error  -         0                              start: exit code 1 (next retry at 12:30:00)
blog/2   started      active    0                 80/tcp,icmp  fine
db/0     pending      -         10

RELATION    INTERFACE  PROVIDER   CONSUMER  STATE  MESSAGE
relation-3  mysql      db:server  blog:db   error  blog/2: db-relation-changed: exit code 1
relation-0  ring       db:ring    db:ring   up
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSelect(t *testing.T) {
	tests := []struct {
		globs                []string
		machines             []string
		services, units, rel int
	}{
		{[]string{"db"}, []string{"10"}, 1, 1, 2},
		{[]string{"blog/2"}, []string{"0"}, 1, 1, 1},
		{[]string{"blog/*", "db"}, []string{"0", "10"}, 2, 3, 2},
		{[]string{"*"}, []string{"0", "10"}, 2, 3, 2},
		{[]string{"x*"}, nil, 0, 0, 0},
	}
	for _, tt := range tests {
		s := selectStatus(sample(), tt.globs)
		units := 0
		for _, sv := range s.Services {
			units += len(sv.Units)
		}
		if len(s.Services) != tt.services || units != tt.units || len(s.Relations) != tt.rel || len(s.Machines) != len(tt.machines) {
			t.Errorf("%v: %d services, %d units, %d relations, machines %v", tt.globs, len(s.Services), units, len(s.Relations), s.Machines)
		}
	}
	if checkGlobs([]string{"["}) == nil {
		t.Error("a broken pattern was accepted")
	}
}
