package state_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"bijou/state"
	"bijou/state/status"
	"bijou/testscripts/kit/statetest"
)

// blogs creates two blogs and a database, whose units and machines are in different states.
func blogs(t *testing.T, st *state.State) {
	t.Helper()
	statetest.AddService(t, st, statetest.MySQL(), 1)
	c := statetest.AddCharm(t, st, statetest.WordPress())
	statetest.AddServiceOf(t, st, c, "blog", 2)
	statetest.AddServiceOf(t, st, c, "shop", 0)
	statetest.Relate(t, st, "blog", "mysql")
	statetest.Relate(t, st, "shop", "mysql")
	statetest.Session(t, st, "machine-0", "unit-mysql-0", "unit-blog-1")
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	failure := &state.Failure{Hook: state.Hook{Name: "db-relation-changed"}, Message: "exit code 1", Since: since, Attempts: 2, RetryAt: since.Add(time.Minute)}
	install := &state.Failure{Hook: state.Hook{Name: "install"}, Message: "exit code 2", Stderr: "cannot bind, with password=s3cr3t", Since: since, Attempts: 1}
	statetest.Update(t, st, func(tx *state.Tx) error {
		return errors.Join(
			tx.SetMachineStatus("0", state.MachineRunning, ""),
			tx.SetAddresses("0", state.Addresses{Private: "10.0.0.1", Public: "host.example"}),
			tx.PutWorkflow("mysql/0", state.Workflow{State: "started"}),
			tx.SetUnitCharm("mysql/0", "local:jammy/mysql-3"),
			tx.SetUnitStatus("mysql/0", state.WorkloadStatus{Status: "active", Message: "ready", Since: since}),
			tx.SetPorts("mysql/0", []state.Port{{From: 3306, To: 3306, Protocol: "tcp"}}),
			tx.PutRelationState("mysql/0", 1, state.RelationState{State: state.RelationUp}),
			tx.PutWorkflow("blog/0", state.Workflow{State: "started"}),
			tx.SetUnitCharm("blog/0", "local:jammy/wordpress-0"),
			tx.PutRelationState("blog/0", 1, state.RelationState{State: state.RelationError, Failure: failure}),
			tx.PutWorkflow("blog/1", state.Workflow{State: "install-error", Failure: install}),
			tx.SetExposed("blog", true),
			tx.SetServiceStatus("blog", state.WorkloadStatus{Status: "waiting"}),
		)
	})
	if err := st.DestroyService(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
}

const blogsYAML = `machines:
    "0":
        instance-id: localhost
        state: running
        dns-name: host.example
        series: jammy
services:
    blog:
        charm: local:jammy/wordpress-0
        series: jammy
        hook-dialect: classic
        hook-dialect-mark: nothing in the charm requires the modern dialect
        exposed: true
        service-status:
            current: waiting
        relations:
            db:
                - mysql
        units:
            blog/0:
                state: down
                state-info:
                    last-state: started
                    message: its agent is gone, or cannot reach the store
                machine: "0"
                public-address: host.example
                relations:
                    db:
                        relation-1:
                            state: error
                            message: 'db-relation-changed: exit code 1'
                            see: juju debug-log --unit blog/0
                            since: 2026-01-02T03:04:05Z
                            attempts: 2
                        state: error
            blog/1:
                state: install-error
                state-info:
                    hook: install
                    message: exit code 2
                    stderr: cannot bind, with password=(hidden)
                    see: juju debug-log --unit blog/1
                    since: 2026-01-02T03:04:05Z
                    attempts: 1
                machine: "0"
                public-address: host.example
                relations:
                    db:
                        relation-1:
                            state: start
                        state: start
    mysql:
        charm: local:jammy/mysql-3
        series: jammy
        hook-dialect: classic
        hook-dialect-mark: nothing in the charm requires the modern dialect
        exposed: false
        relations:
            cluster:
                - mysql
            server:
                - blog
        units:
            mysql/0:
                state: started
                workload-status:
                    current: active
                    message: ready
                    since: 2026-01-02T03:04:05Z
                machine: "0"
                public-address: host.example
                open-ports:
                    - 3306/tcp
                relations:
                    cluster:
                        relation-0:
                            state: start
                        state: start
                    server:
                        relation-1:
                            state: up
                        state: up
relations:
    relation-0:
        interface: mysql-ha
        scope: global
        services:
            mysql:
                relation-name: cluster
                role: peers
                state: start
                units:
                    mysql/0:
                        state: start
    relation-1:
        interface: mysql
        scope: global
        services:
            blog:
                relation-name: db
                role: consumes
                state: error
                units:
                    blog/0:
                        state: error
                        message: 'db-relation-changed: exit code 1'
                        see: juju debug-log --unit blog/0
                        since: 2026-01-02T03:04:05Z
                        attempts: 2
                    blog/1:
                        state: start
            mysql:
                relation-name: server
                role: provides
                state: up
                units:
                    mysql/0:
                        state: up
`

func TestStatus(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		blogs(t, st)
		s := statetest.Read(t, st, statusNow)
		got, err := yaml.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(blogsYAML, string(got)); d != "" {
			t.Error(d)
		}
		var fromYAML, fromJSON any
		text, err := json.Marshal(s)
		if err := errors.Join(err, json.Unmarshal(text, &fromJSON), yaml.Unmarshal(got, &fromYAML)); err != nil {
			t.Fatal(err)
		}
		text2, err := json.Marshal(fromYAML)
		if err == nil {
			err = json.Unmarshal(text2, &fromYAML)
		}
		if d := cmp.Diff(fromYAML, fromJSON); d != "" || err != nil {
			t.Errorf("JSON differs from YAML: %s%v", d, err)
		}
	})
}

func TestStatusOfMachines(t *testing.T) {
	st := statetest.New(t)
	statetest.Update(t, st, func(tx *state.Tx) error {
		if _, err := tx.AddMachine(state.Machine{}); err != nil {
			return err
		}
		return errors.Join(
			tx.SetMachineStatus("0", state.MachineRunning, ""), // the agent of machine 0 is gone
			tx.SetMachineStatus("1", state.MachineError, "no more hosts"),
		)
	})
	got := statetest.Read(t, st, statusNow).Machines
	want := map[string]status.Machine{
		"0": {InstanceID: "localhost", State: state.MachineDown, Series: "jammy"},
		"1": {State: state.MachineError, Series: "jammy", Error: "no more hosts"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// BenchmarkStatus measures the status of 10,000 related units on SQLite. $BIJOU_MEASURE names an environment
// to use instead. Commands can then be measured in it too.
func BenchmarkStatus(b *testing.B) {
	var st *state.State
	if url := os.Getenv("BIJOU_MEASURE"); url != "" {
		st = statetest.Open(b, url)
	} else {
		st, _ = statetest.SQLite(b)
	}
	statetest.AddService(b, st, statetest.MySQL(), 1)
	statetest.AddService(b, st, statetest.WordPress(), 0)
	r := statetest.Relate(b, st, "wordpress", "mysql")
	for i := 0; i < 10_000; i += 10 {
		units, err := st.AddUnits(b.Context(), "wordpress", 10, state.Placement{})
		if err != nil {
			b.Fatal(err)
		}
		statetest.Update(b, st, func(tx *state.Tx) error {
			for _, u := range units {
				err := errors.Join(
					tx.EnterRelation(r.ID, u.Name, map[string]string{"private-address": fmt.Sprint("10.0.0.", i)}),
					tx.PutWorkflow(u.Name, state.Workflow{State: "started", Charm: "local:jammy/wordpress-0"}),
					tx.PutRelationState(u.Name, r.ID, state.RelationState{State: state.RelationUp}),
					tx.PutMember(u.Name, r.ID, "mysql/0", state.MemberState{State: "joined", Seen: 1}),
					tx.PutMember("mysql/0", r.ID, u.Name, state.MemberState{State: "joined", Seen: 1}),
				)
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	for b.Loop() {
		s := statetest.Read(b, st, statusNow)
		if len(s.Services["wordpress"].Units) != 10_000 {
			b.Fatal("units are missing")
		}
	}
}

func statusNow(v *state.View) (status.Status, error) {
	return status.Read(v, status.Options{Now: time.Now()})
}
