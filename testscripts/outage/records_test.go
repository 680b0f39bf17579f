package outage

import (
	"path/filepath"

	"bijou/state"
	"bijou/testscripts/judge"
)

// records are those of all units that are or were, by unit.
func (w *world) records() map[string][]judge.Event {
	w.t.Helper()
	all, err := judge.ReadAll(w.Unit("*", "recorder.log"), filepath.Join(w.gone, "*"))
	check(w.t, err)
	return all
}

// end is what the state says now.
func (w *world) end() (e judge.End, err error) {
	err = w.view(func(v *state.View) error {
		e, err = judge.EndOf(v)
		return err
	})
	return e, err
}
