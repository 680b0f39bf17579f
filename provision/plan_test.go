package provision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/provider"
)

func TestPlan(t *testing.T) {
	up := func(id, machine string) provider.Instance {
		return provider.Instance{ID: id, Machine: machine, Running: true}
	}
	ended := func(id, machine string) provider.Instance { return provider.Instance{ID: id, Machine: machine} }
	tests := []struct {
		name string
		want []Wanted
		have []provider.Instance
		plan []Action
	}{
		{"nothing", nil, nil, nil},
		{"a new machine is started", []Wanted{{ID: "1", Life: Alive}}, nil, []Action{{Verb: Start, Machine: "1"}}},
		{"a running machine is left alone", []Wanted{{ID: "1", Life: Alive, Instance: "i1"}}, []provider.Instance{up("i1", "1")}, nil},
		{"machine 0 is nobody's", []Wanted{{ID: "0", Life: Alive, Hosted: true}, {ID: "0", Life: Dead, Hosted: true}}, nil, nil},
		{"started but not recorded", []Wanted{{ID: "1", Life: Alive}}, []provider.Instance{up("i1", "1")},
			[]Action{{Verb: Record, Machine: "1", Instance: "i1"}}},
		{"recorded but another one runs", []Wanted{{ID: "1", Life: Alive, Instance: "old"}}, []provider.Instance{up("i1", "1")},
			[]Action{{Verb: Record, Machine: "1", Instance: "i1"}}},
		{"an ended instance is started again", []Wanted{{ID: "1", Life: Alive, Instance: "i1"}}, []provider.Instance{ended("i1", "1")},
			[]Action{{Verb: Start, Machine: "1"}}},
		{"a vanished instance is started again", []Wanted{{ID: "1", Life: Alive, Instance: "i1"}}, nil,
			[]Action{{Verb: Start, Machine: "1"}}},
		{"one too many: the recorded one stays", []Wanted{{ID: "1", Life: Alive, Instance: "i2"}}, []provider.Instance{up("i1", "1"), up("i2", "1")},
			[]Action{{Verb: Stop, Machine: "1", Instance: "i1"}}},
		{"one too many, none recorded", []Wanted{{ID: "1", Life: Alive}}, []provider.Instance{up("i1", "1"), up("i2", "1")},
			[]Action{{Verb: Record, Machine: "1", Instance: "i1"}, {Verb: Stop, Machine: "1", Instance: "i2"}}},
		{"a failed start waits", []Wanted{{ID: "1", Life: Alive, Held: true}, {ID: "2", Life: Alive}}, nil,
			[]Action{{Verb: Start, Machine: "2"}}},
		{"a failed start that came up after all", []Wanted{{ID: "1", Life: Alive, Held: true}}, []provider.Instance{up("i1", "1")},
			[]Action{{Verb: Record, Machine: "1", Instance: "i1"}}},
		{"a stray instance is stopped", nil, []provider.Instance{up("i9", "9"), ended("i8", "8")},
			[]Action{{Verb: Stop, Machine: "8", Instance: "i8"}, {Verb: Stop, Machine: "9", Instance: "i9"}}},
		{"a dead machine's instance is stopped", []Wanted{{ID: "1", Life: Dead, Instance: "i1"}}, []provider.Instance{up("i1", "1")},
			[]Action{{Verb: Stop, Machine: "1", Instance: "i1"}}},
		{"what a dead machine left is stopped, too", []Wanted{{ID: "1", Life: Dead, Instance: "i1"}}, []provider.Instance{ended("i1", "1")},
			[]Action{{Verb: Stop, Machine: "1", Instance: "i1"}}},
		{"a dead machine without instance is removed", []Wanted{{ID: "1", Life: Dead, Instance: "i1"}}, nil,
			[]Action{{Verb: Remove, Machine: "1"}}},
		{"a dying machine keeps its agent", []Wanted{{ID: "1", Life: Dying, Instance: "i1"}}, []provider.Instance{up("i1", "1")}, nil},
		{"a dying machine gets its agent back", []Wanted{{ID: "1", Life: Dying, Instance: "i1"}}, nil,
			[]Action{{Verb: Start, Machine: "1"}}},
		{"a dying machine that never had an agent", []Wanted{{ID: "1", Life: Dying}}, nil,
			[]Action{{Verb: Remove, Machine: "1"}}},
		{"but units want to say good-bye", []Wanted{{ID: "1", Life: Dying, Units: 1}}, nil,
			[]Action{{Verb: Start, Machine: "1"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.plan, Plan(tt.want, tt.have)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
