package outage

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/testscripts/kit/judge"
)

// unitsOf returns a service's living units.
func (w *world) unitsOf(service string) (names []string, err error) {
	err = w.view(func(v *state.View) error {
		units, err := v.Units(service)
		for _, u := range units {
			if u.Life == state.Alive {
				names = append(names, u.Name)
			}
		}
		return err
	})
	return names, err
}

// records returns the records of all present and past units, by unit.
func (w *world) records() map[string][]judge.Event {
	w.t.Helper()
	all, err := judge.ReadAll(w.recorderLogs(), filepath.Join(w.gone, "*"))
	check(w.t, err)
	return all
}

// settle waits until every unit has run all hooks that are due.
func (w *world) settle(what string) {
	w.t.Helper()
	w.eventually("everything is told after "+what, 4*time.Minute, func() string {
		lack, err := judge.MissingFrom(w.t.Context(), w.url, w.records())
		if err != nil {
			return err.Error()
		}
		return strings.Join(lack, "\n")
	})
}

// judge checks all records against the rules and prints the counts.
func (w *world) judge(suite string, counted string) {
	w.t.Helper()
	units, hooks, failed, wrong := 0, 0, 0, 0
	for unit, events := range w.records() {
		all, _ := judge.Runs(events)
		units, hooks = units+1, hooks+len(all)
		failed += len(slices.DeleteFunc(all, func(r judge.Run) bool { return !r.Failed() }))
		for _, v := range judge.Violations(events) {
			w.t.Errorf("%s: %s", unit, v)
			wrong++
		}
	}
	fmt.Printf("outage: %s: %d units, %d hooks (%d failed and run again), %s, %d violations\n", suite, units, hooks, failed, counted, wrong)
}
