package outage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/state"

	"bijou/testscripts/judge"
)

// unitsOf are a service's units that live.
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

// settle waits until everything has been told to everybody.
func (w *world) settle(what string) {
	w.t.Helper()
	w.eventually("everything is told after "+what, 4*time.Minute, func() string {
		e, err := w.end()
		if err != nil {
			return err.Error()
		}
		return strings.Join(judge.Missing(e, w.records()), "\n")
	})
}

// judge holds all records against the rules, and says what was counted.
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
