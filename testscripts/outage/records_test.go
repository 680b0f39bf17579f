package outage

import (
	"path/filepath"

	"bijou/state"
	"bijou/testscripts/judge"
)

// records are those of all units that are or were, by unit.
func (w *world) records() map[string][]judge.Event {
	w.t.Helper()
	all := map[string][]judge.Event{}
	read := func(unit, path string) {
		events, err := judge.Read(path)
		check(w.t, err)
		all[unit] = events
	}
	logs, err := filepath.Glob(w.machine("units", "*", "recorder.log"))
	check(w.t, err)
	for _, log := range logs {
		read(judge.UnitOf(filepath.Base(filepath.Dir(log))), log)
	}
	saved, err := filepath.Glob(filepath.Join(w.gone, "*"))
	check(w.t, err)
	for _, log := range saved {
		read(judge.UnitOf(filepath.Base(log)), log)
	}
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
