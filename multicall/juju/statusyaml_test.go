package juju

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/status"
	"bijou/state/text"
)

// What is written entry by entry is what yaml prints of all of it at once.
func TestStatusYAML(t *testing.T) {
	full := status.Status{
		Machines: map[string]status.Machine{}, Services: map[string]status.Service{"a10": {Charm: "local:x-1"}, "a2": {Status: &status.Workload{Current: "active"}}, "yes": {}},
		Relations: map[string]status.Relation{
			"relation-2":  {Interface: "mysql", Services: map[string]status.RelationEnd{"a10": {Name: "db"}, "a2": {}}},
			"relation-10": {},
		},
		Provisioner: &state.ProvisionerTrouble{Messages: []string{"no\nroom"}},
	}
	units, ends := map[string]status.Unit{}, map[string]status.RelationUnit{}
	for i := range 120 {
		name := fmt.Sprintf("b/%d", i)
		message := []string{"", "ready", "two\n  lines\n\nand more\n", " begins with a space\n", "a bell \a", "# no comment", "1", "null"}[i%8]
		units[name] = status.Unit{
			State: "started", Machine: fmt.Sprint(i), Workload: &status.Workload{Current: "active", Message: message, Since: time.Unix(int64(i), 0).UTC()},
			Relations: map[string]status.UnitRelation{"db": {State: "up", Relations: map[string]status.RelationUnit{"relation-2": {State: "up", Stderr: message}}}},
		}
		ends[name] = status.RelationUnit{State: "error", Message: message}
		full.Machines[fmt.Sprint(i)] = status.Machine{State: state.MachineRunning, Error: message}
	}
	full.Services["b"] = status.Service{Charm: "local:b-1", Units: units}
	full.Relations["relation-3"] = status.Relation{Interface: "i", Services: map[string]status.RelationEnd{"b": {Name: "peers", State: "error", Units: ends}}}

	for _, s := range []status.Status{{}, full} {
		want, err := text.MarshalYAML(s)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := writeStatusYAML(&got, s); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got.String()); d != "" {
			t.Error(d)
		}
	}
}
