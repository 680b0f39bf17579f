package provision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/provision/provider"
	"bijou/state"
)

func TestPlan(t *testing.T) {
	up := func(id, machine string) provider.Instance {
		return provider.Instance{ID: id, Environment: "e", Machine: machine, Running: true}
	}
	ended := func(id, machine string) provider.Instance {
		return provider.Instance{ID: id, Environment: "e", Machine: machine}
	}
	tests := []struct {
		name string
		want []Wanted
		have []provider.Instance
		plan []Action
	}{
		{"nothing", nil, nil, nil},
		{"a new machine is started", []Wanted{{ID: "1", Life: state.Alive}}, nil, []Action{{Verb: Start, Machine: "1"}}},
		{"a running machine is left alone", []Wanted{{ID: "1", Life: state.Alive, Instance: "i1"}}, []provider.Instance{up("i1", "1")}, nil},
		{"machine 0 is nobody's", []Wanted{{ID: "0", Life: state.Alive, Unmanaged: true}, {ID: "0", Life: state.Dead, Unmanaged: true}}, nil, nil},
		{"started but not recorded", []Wanted{{ID: "1", Life: state.Alive}}, []provider.Instance{up("i1", "1")},
			[]Action{{Verb: Record, Machine: "1", Instance: "i1"}}},
		{"recorded but another one runs", []Wanted{{ID: "1", Life: state.Alive, Instance: "old"}}, []provider.Instance{up("i1", "1")},
			[]Action{{Verb: Record, Machine: "1", Instance: "i1"}}},
		{"an ended instance is started again", []Wanted{{ID: "1", Life: state.Alive, Instance: "i1"}}, []provider.Instance{ended("i1", "1")},
			[]Action{{Verb: Start, Machine: "1"}}},
		{"a vanished instance is started again", []Wanted{{ID: "1", Life: state.Alive, Instance: "i1"}}, nil,
			[]Action{{Verb: Start, Machine: "1"}}},
		{"one too many: the recorded one stays", []Wanted{{ID: "1", Life: state.Alive, Instance: "i2"}}, []provider.Instance{up("i1", "1"), up("i2", "1")},
			[]Action{{Verb: Stop, Machine: "1", Instance: "i1"}}},
		{"one too many, none recorded", []Wanted{{ID: "1", Life: state.Alive}}, []provider.Instance{up("i1", "1"), up("i2", "1")},
			[]Action{{Verb: Record, Machine: "1", Instance: "i1"}, {Verb: Stop, Machine: "1", Instance: "i2"}}},
		{"a failed start waits", []Wanted{{ID: "1", Life: state.Alive, AwaitsRetry: true}, {ID: "2", Life: state.Alive}}, nil,
			[]Action{{Verb: Start, Machine: "2"}}},
		{"a failed start that came up after all", []Wanted{{ID: "1", Life: state.Alive, AwaitsRetry: true}}, []provider.Instance{up("i1", "1")},
			[]Action{{Verb: Record, Machine: "1", Instance: "i1"}}},
		{"an instance of a machine that was removed is stopped", nil, []provider.Instance{up("i9", "9"), ended("i8", "8")},
			[]Action{{Verb: Stop, Machine: "8", Instance: "i8"}, {Verb: Stop, Machine: "9", Instance: "i9"}}},
		{"a dead machine's instance is stopped", []Wanted{{ID: "1", Life: state.Dead, Instance: "i1"}}, []provider.Instance{up("i1", "1")},
			[]Action{{Verb: Stop, Machine: "1", Instance: "i1"}}},
		{"what a dead machine left is stopped, too", []Wanted{{ID: "1", Life: state.Dead, Instance: "i1"}}, []provider.Instance{ended("i1", "1")},
			[]Action{{Verb: Stop, Machine: "1", Instance: "i1"}}},
		{"a dead machine without instance is removed", []Wanted{{ID: "1", Life: state.Dead}}, nil,
			[]Action{{Verb: Remove, Machine: "1"}}},
		{"a dead machine's instance that is not listed is stopped", []Wanted{{ID: "1", Life: state.Dead, Instance: "i1"}}, nil,
			[]Action{{Verb: Stop, Machine: "1", Instance: "i1"}}},
		{"and so is what is listed beside it", []Wanted{{ID: "1", Life: state.Dead, Instance: "i1"}}, []provider.Instance{up("i2", "1")},
			[]Action{{Verb: Stop, Machine: "1", Instance: "i1"}, {Verb: Stop, Machine: "1", Instance: "i2"}}},
		{"but not what another machine has", []Wanted{{ID: "1", Life: state.Dead, Instance: "i1"}, {ID: "2", Life: state.Dying, Instance: "i1"}}, nil,
			[]Action{{Verb: Remove, Machine: "1"}, {Verb: Start, Machine: "2"}}},
		{"a dying machine keeps its agent", []Wanted{{ID: "1", Life: state.Dying, Instance: "i1"}}, []provider.Instance{up("i1", "1")}, nil},
		{"a dying machine gets its agent back", []Wanted{{ID: "1", Life: state.Dying, Instance: "i1"}}, nil,
			[]Action{{Verb: Start, Machine: "1"}}},
		{"a dying machine that never had an agent", []Wanted{{ID: "1", Life: state.Dying}}, nil,
			[]Action{{Verb: Remove, Machine: "1"}}},
		{"but units want to say good-bye", []Wanted{{ID: "1", Life: state.Dying, Units: 1}}, nil,
			[]Action{{Verb: Start, Machine: "1"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, wrong := Plan(Want{Environment: "e", Harvest: state.HarvestAll, Next: 20, Machines: tt.want}, tt.have)
			if diff := cmp.Diff(tt.plan, got); diff != "" || wrong != nil {
				t.Error(diff, wrong)
			}
		})
	}
}

// TestPlanHarvests checks the plan for one machine and one instance of each kind, in each mode.
func TestPlanHarvests(t *testing.T) {
	up := func(id, machine string) provider.Instance {
		return provider.Instance{ID: id, Environment: "e", Machine: machine, Running: true}
	}
	machines := []Wanted{{ID: "1", Life: state.Alive, Instance: "i1"}, {ID: "2", Life: state.Dead, Instance: "i2"}}
	have := []provider.Instance{
		up("i1", "1"), up("i2", "2"), up("removed", "3"), up("never", "30"), up("second", "1"),
		{ID: "other", Environment: "another", Machine: "2", Running: true},
	}
	stop := func(machine, id string) Action { return Action{Verb: Stop, Machine: machine, Instance: id} }
	left := Action{Verb: Remove, Machine: "2", Instance: "i2"}
	tests := map[state.Harvest][]Action{
		state.HarvestDestroyed: {stop("2", "i2"), stop("3", "removed")},
		state.HarvestUnknown:   {stop("1", "second"), left, stop("30", "never")},
		state.HarvestAll:       {stop("1", "second"), stop("2", "i2"), stop("3", "removed"), stop("30", "never")},
		state.HarvestNone:      {left},
	}
	for mode, plan := range tests {
		t.Run(string(mode), func(t *testing.T) {
			got, wrong := Plan(Want{Environment: "e", Harvest: mode, Next: 20, Machines: machines}, have)
			if diff := cmp.Diff(plan, got); diff != "" {
				t.Error(diff)
			}
			if said := len(wrong) == 2; said == mode.StopsUnknown() {
				t.Errorf("said %q", wrong)
			}
		})
	}
}

// TestPlanOfLies checks that after an impossible answer of a provider, no instance of a known machine is
// stopped, and none is started beside a running one.
func TestPlanOfLies(t *testing.T) {
	of := func(id, environment, machine string) provider.Instance {
		return provider.Instance{ID: id, Environment: environment, Machine: machine, Running: true}
	}
	first := Wanted{ID: "1", Life: state.Alive, Instance: "i1"}
	tests := []struct {
		name  string
		want  []Wanted
		have  []provider.Instance
		plan  []Action
		wrong string
	}{
		{"without an id", nil, []provider.Instance{of("", "e", "1")}, nil,
			`1 instances have no id, such as that of machine "1"; bijou leaves them alone`},
		{"told twice", []Wanted{first}, []provider.Instance{of("i1", "e", "1"), of("i1", "e", "1")}, nil,
			`instance "i1" is listed 2 times`},
		{"told as two machines'", []Wanted{first, {ID: "2", Life: state.Dead}}, []provider.Instance{of("i1", "e", "2"), of("i1", "e", "1")},
			[]Action{{Verb: Remove, Machine: "2"}}, `instance "i1" is listed 2 times, with different data; one entry is for machine "1"`},
		{"told as two machines', and recorded for none", nil, []provider.Instance{of("i1", "e", "2"), of("i1", "e", "3")}, nil,
			`instance "i1" is listed 2 times, with different data; one entry is for machine "2"`},
		{"told as a dead machine's", []Wanted{first, {ID: "2", Life: state.Dead}}, []provider.Instance{of("i1", "e", "2")},
			[]Action{{Verb: Remove, Machine: "2"}}, `instance "i1" of machine 1 claims to belong to machine "2"`},
		{"told as a removed machine's", []Wanted{first}, []provider.Instance{of("i1", "e", "9")}, nil,
			`instance "i1" of machine 1 claims to belong to machine "9"`},
		{"told as nobody's", []Wanted{first}, []provider.Instance{of("i1", "e", "")}, nil,
			`instance "i1" of machine 1 claims to belong to machine ""`},
		{"told as another environment's", []Wanted{first}, []provider.Instance{of("i1", "o", "1")}, nil,
			`instance "i1" of machine 1 is tagged with model "o"; bijou leaves the instance alone`},
		{"told as another environment's, too", []Wanted{first}, []provider.Instance{of("i1", "e", "1"), of("i1", "o", "1")}, nil,
			`instance "i1" of machine 1 is tagged with model "o"; bijou leaves the instance alone`},
		{"a dead machine's, told as another environment's", []Wanted{{ID: "1", Life: state.Dead, Instance: "i1"}}, []provider.Instance{of("i1", "o", "1")},
			[]Action{{Verb: Remove, Machine: "1"}}, `instance "i1" of machine 1 is tagged with model "o"; bijou leaves the instance alone`},
		{"recorded for two, of which one is dead", []Wanted{first, {ID: "2", Life: state.Dead, Instance: "i1"}}, []provider.Instance{of("i1", "e", "2")},
			[]Action{{Verb: Remove, Machine: "2"}}, `instance "i1" is recorded for the machines 1, 2`},
		{"told as the bootstrapped machine's", []Wanted{{ID: "0", Life: state.Alive, Instance: "localhost", Unmanaged: true}},
			[]provider.Instance{of("i1", "e", "0")}, nil, `instance "i1" claims to belong to machine 0, which has no instance; bijou leaves the instance alone`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, wrong := Plan(Want{Environment: "e", Harvest: state.HarvestAll, Next: 20, Machines: tt.want}, tt.have)
			if diff := cmp.Diff(tt.plan, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{tt.wrong}, wrong); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPlanRecordsAddresses checks that only addresses that the provider knows are recorded.
func TestPlanRecordsAddresses(t *testing.T) {
	have := []provider.Instance{{ID: "i1", Environment: "e", Machine: "1", Running: true, Private: "10.0.0.1"}}
	plan := func(w Wanted) []Action {
		w.ID, w.Life, w.Instance = "1", state.Alive, "i1"
		got, _ := Plan(Want{Environment: "e", Machines: []Wanted{w}}, have)
		return got
	}
	want := []Action{{Verb: Record, Machine: "1", Instance: "i1", Private: "10.0.0.1"}}
	if diff := cmp.Diff(want, plan(Wanted{Public: "found.by.agent"})); diff != "" {
		t.Error(diff)
	}
	if got := plan(Wanted{Private: "10.0.0.1", Public: "found.by.agent"}); got != nil {
		t.Errorf("recorded addresses are recorded again: %v", got)
	}
}
