package provision

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"bijou/provision/provider"
	"bijou/state"
)

// TestPlanConverges repeatedly carries out the plan for random states and providers, some of which give false
// answers. It checks the invariants at each step and at the end.
func TestPlanConverges(t *testing.T) {
	for seed := range uint64(3000) {
		s := newSim(seed)
		lies := s.r.IntN(3) * 4 // the number of rounds in which the provider gives false answers
		for round := range lies {
			s.round(t, s.lie(), fmt.Sprintf("seed %d, lying round %d", seed, round))
		}
		s.honest = true
		for round := range 6 {
			s.round(t, s.have, fmt.Sprintf("seed %d, honest round %d", seed, round))
		}
		if left, wrong := Plan(s.want(), s.have); len(left) > 0 {
			t.Errorf("seed %d: it does not converge: still %v of %+v, have %+v (%v)", seed, left, s.machines, s.have, wrong)
		}
		s.atEnd(t, seed, lies > 0)
		if t.Failed() {
			return
		}
	}
}

// sim is a state and a provider in memory.
type sim struct {
	r        *rand.Rand
	harvest  state.Harvest
	next     int
	machines []Wanted
	have     []provider.Instance // the provider's instances
	foreign  []provider.Instance
	honest   bool
	made     map[string]int // the number of instances that were made, by machine
	answered []string       // the instances that the starts of this round have returned
}

func newSim(seed uint64) *sim {
	s := &sim{r: rand.New(rand.NewPCG(seed, 7)), made: map[string]int{}}
	modes := []state.Harvest{state.HarvestDestroyed, state.HarvestUnknown, state.HarvestAll, state.HarvestNone}
	s.harvest = modes[s.r.IntN(len(modes))]
	s.next = s.r.IntN(8) + 1
	for n := 1; n < s.next; n++ {
		s.begin(strconv.Itoa(n))
	}
	s.have = append(s.have, provider.Instance{ID: "never", Environment: "e", Machine: "99", Running: true})
	s.foreign = []provider.Instance{{ID: "foreign", Environment: "o", Machine: "1", Running: true}}
	s.have = append(s.have, s.foreign...)
	return s
}

// begin adds a machine in a random stage. The machine may be removed, and may have an instance, which may be
// recorded.
func (s *sim) begin(id string) {
	i := provider.Instance{ID: "i" + id, Environment: "e", Machine: id, Running: s.r.IntN(4) > 0}
	there := s.r.IntN(3) > 0
	if there {
		s.have = append(s.have, i)
		s.made[id]++
	}
	lives := []state.Life{state.Alive, state.Alive, state.Alive, state.Dying, state.Dead}
	if s.r.IntN(6) == 0 {
		return // removed
	}
	w := Wanted{ID: id, Life: lives[s.r.IntN(len(lives))], Units: s.r.IntN(2)}
	if there && s.r.IntN(3) > 0 {
		w.Instance = i.ID
	}
	s.machines = append(s.machines, w)
}

func (s *sim) want() Want {
	return Want{Environment: "e", Harvest: s.harvest, Next: s.next, Machines: s.machines}
}

// lie returns a false list of instances.
func (s *sim) lie() []provider.Instance {
	told := slices.Clone(s.have)
	for range s.r.IntN(4) {
		any := strconv.Itoa(s.r.IntN(s.next + 2))
		one := s.r.IntN(len(told))
		switch s.r.IntN(7) {
		case 0:
			told[one].Machine = any
		case 1:
			told = append(told, told[one])
		case 2:
			double := told[one]
			double.Machine = any
			told = append(told, double)
		case 3:
			told[one].ID = ""
		case 4:
			told = append(told, provider.Instance{ID: "ghost" + any, Environment: "e", Machine: any, Running: s.r.IntN(2) == 0})
		case 5:
			told[one].Running = !told[one].Running
		case 6:
			told[one].Environment = "o"
		}
	}
	return told
}

// round carries out one plan.
func (s *sim) round(t *testing.T, told []provider.Instance, when string) {
	t.Helper()
	actions, wrong := Plan(s.want(), told)
	again, _ := Plan(s.want(), told)
	if !slices.Equal(actions, again) {
		t.Errorf("%s: two plans for the same: %v and %v", when, actions, again)
	}
	if len(wrong) > 2 && s.honest && s.harvest.StopsUnknown() {
		t.Errorf("%s: an honest provider is said to be wrong: %q", when, wrong)
	}
	begun := map[string]bool{}
	s.answered = nil
	for _, a := range actions {
		s.apply(t, a, when)
		if a.Verb == Start || a.Verb == Record {
			if begun[a.Machine] {
				t.Errorf("%s: machine %s gets two instances: %v", when, a.Machine, actions)
			}
			begun[a.Machine] = true
		}
	}
}

// apply carries out one action as the loop and a correct provider would.
func (s *sim) apply(t *testing.T, a Action, when string) {
	t.Helper()
	at := slices.IndexFunc(s.machines, func(w Wanted) bool { return w.ID == a.Machine })
	switch a.Verb {
	case Start:
		s.machines[at].Instance = s.start(a.Machine)
		s.answered = append(s.answered, s.machines[at].Instance)
	case Record:
		s.machines[at].Instance = a.Instance
	case Stop:
		s.stop(t, a.Instance, when)
	case Remove:
		if s.machines[at].Life == state.Alive {
			t.Errorf("%s: an alive machine is removed", when)
		}
		s.machines = slices.Delete(s.machines, at, at+1)
	}
}

// start starts a machine's instance and returns its id. It returns the machine's existing instance if there is
// one.
func (s *sim) start(machine string) string {
	own := slices.IndexFunc(s.have, func(i provider.Instance) bool { return i.Environment == "e" && i.Machine == machine })
	if own >= 0 {
		s.have[own].Running = true
		return s.have[own].ID
	}
	s.made[machine]++
	i := provider.Instance{ID: fmt.Sprintf("i%s.%d", machine, s.made[machine]), Environment: "e", Machine: machine, Running: true}
	s.have = append(s.have, i)
	return i.ID
}

func (s *sim) stop(t *testing.T, instance, when string) {
	t.Helper()
	if slices.Contains(s.answered, instance) { // the loop knows this instance too
		return
	}
	for _, w := range s.machines {
		if w.Instance == instance && w.Life == state.Alive {
			t.Errorf("%s: the instance %s of machine %s is stopped, which is alive", when, instance, w.ID)
		}
	}
	if instance == "foreign" || s.harvest == state.HarvestNone {
		t.Errorf("%s: %s is stopped, mode %s", when, instance, s.harvest)
	}
	s.have = slices.DeleteFunc(s.have, func(i provider.Instance) bool { return i.ID == instance })
	for at, w := range s.machines {
		if w.Life == state.Dead && w.Instance == instance { // as the loop does
			s.machines[at].Instance = ""
		}
	}
}

// atEnd checks that each machine has exactly one running instance, that dead machines are gone, and
// that strays are treated as the mode says.
func (s *sim) atEnd(t *testing.T, seed uint64, lied bool) {
	t.Helper()
	for _, w := range s.machines {
		own := slices.DeleteFunc(slices.Clone(s.have), func(i provider.Instance) bool { return i.ID != w.Instance })
		if w.Life == state.Dead || len(own) != 1 || !own[0].Running {
			t.Errorf("seed %d: machine %+v has %+v", seed, w, own)
		}
	}
	stray := slices.ContainsFunc(s.have, func(i provider.Instance) bool { return i.ID == "never" })
	if stray == s.harvest.StopsUnknown() && !lied { // otherwise the provider may have listed the stray as the instance of a machine
		t.Errorf("seed %d: the stray instance is there: %t, mode %s", seed, stray, s.harvest)
	}
	if !slices.Contains(s.have, s.foreign[0]) {
		t.Errorf("seed %d: another environment's instance is gone", seed)
	}
}
