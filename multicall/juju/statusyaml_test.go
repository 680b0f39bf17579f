package juju

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"bijou/state"
	"bijou/state/status"
	"bijou/state/text"
)

// TestStatusYAML checks that YAML that is written entry by entry is equal to YAML that is written in one
// call.
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

	type whole struct {
		Model        jujuModel                  `yaml:"model"`
		Machines     map[string]jujuMachine     `yaml:"machines"`
		Applications map[string]jujuApplication `yaml:"applications"`
		Services     map[string]status.Service  `yaml:"services"`
		Relations    map[string]status.Relation `yaml:"relations"`
		Controller   map[string]string          `yaml:"controller"`
		Provisioner  *state.ProvisionerTrouble  `yaml:"provisioner,omitempty"`
	}
	for _, s := range []status.Status{{}, full} {
		j := newJujuStatus(s)
		want, err := text.MarshalYAML(whole{j.Model, j.Machines, j.Applications, s.Services, s.Relations, j.Controller, s.Provisioner})
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := writeStatusYAML(&got, j); err != nil {
			t.Fatal(err)
		}
		var wanted, written any
		if err := errors.Join(yaml.Unmarshal(want, &wanted), yaml.Unmarshal(got.Bytes(), &written)); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(wanted, written); d != "" {
			t.Error(d)
		}
	}
}

// TestStatusYAMLHasTheKeysOfJSON checks that the status has the same keys and values in YAML and JSON.
func TestStatusYAMLHasTheKeysOfJSON(t *testing.T) {
	s := sampleStatus()
	s.Storage = []state.Storage{{ID: "data/0", Unit: "db/0", Machine: "10", Pool: "rootfs"}}
	view := newJujuStatus(s)
	encoded, err := json.Marshal(view)
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	if err := writeStatusYAML(&written, view); err != nil {
		t.Fatal(err)
	}

	var asJSON, asYAML any
	if err := errors.Join(yaml.Unmarshal(encoded, &asJSON), yaml.Unmarshal(written.Bytes(), &asYAML)); err != nil {
		t.Fatal(err)
	}
	var keys func(prefix string, value any) []string
	keys = func(prefix string, value any) (all []string) {
		of, _ := value.(map[string]any)
		for key, below := range of {
			all = append(all, append(keys(prefix+key+".", below), prefix+key)...)
		}
		slices.Sort(all)
		return all
	}
	if d := cmp.Diff(keys("", asJSON), keys("", asYAML)); d != "" {
		t.Errorf("keys (-json +yaml):\n%s", d)
	}
}
