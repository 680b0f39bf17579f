package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func TestUpdateReadsItsOwnWrites(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.MySQL(), 1)
		statetest.Update(t, st, func(tx *state.Tx) error {
			u, err := tx.AddUnit("mysql", state.Placement{})
			if err != nil {
				return err
			}
			if _, err := tx.Unit(u.Name); err != nil {
				t.Errorf("the new unit is not seen: %v", err)
			}
			units, err := tx.Units("mysql")
			if err != nil || len(units) != 2 {
				t.Errorf("units: got %d, %v; want both", len(units), err)
			}
			return nil
		})
	})
}

func TestUpdateWithErrorWritesNothing(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		before := revision(t, st)
		want := errors.New("enough")
		err := st.Update(t.Context(), func(tx *state.Tx) error {
			if _, err := tx.AddMachine(state.Machine{}); err != nil {
				return err
			}
			return want
		})
		if !errors.Is(err, want) {
			t.Errorf("got %v", err)
		}
		if after := revision(t, st); after != before {
			t.Errorf("revision went from %d to %d", before, after)
		}
	})
}

func TestUpdateWithoutDifferenceCommitsNothing(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		r := statetest.Pair(t, st)
		statetest.Enter(t, st, r.ID, "mysql/0", map[string]string{"a": "1"})
		for name, f := range map[string]func(tx *state.Tx) error{
			"reads only": func(tx *state.Tx) error { _, err := tx.Units(""); return err },
			"same settings": func(tx *state.Tx) error {
				_, err := tx.MergeSettings(r.ID, "mysql/0", changes("a", "1"))
				return err
			},
			"unset what is not there": func(tx *state.Tx) error {
				_, err := tx.MergeSettings(r.ID, "mysql/0", map[string]*string{"b": nil})
				return err
			},
			"same status": func(tx *state.Tx) error { return tx.SetMachineStatus("0", state.MachinePending, "") },
			"same ports":  func(tx *state.Tx) error { return tx.SetPorts("mysql/0", nil) },
			"in already":  func(tx *state.Tx) error { return tx.EnterRelation(r.ID, "mysql/0", map[string]string{"x": "y"}) },
		} {
			before := revision(t, st)
			statetest.Update(t, st, f)
			if after := revision(t, st); after != before {
				t.Errorf("%s: revision went from %d to %d", name, before, after)
			}
		}
	})
}

func TestUpdateIsRerunOnConflict(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.MySQL(), 0)
		runs := 0
		statetest.Update(t, st, func(tx *state.Tx) error {
			runs++
			_, err := tx.AddUnit("mysql", state.Placement{})
			if runs == 1 {
				statetest.Update(t, st, func(tx *state.Tx) error {
					_, err := tx.AddUnit("mysql", state.Placement{})
					return err
				})
			}
			return err
		})
		if runs != 2 {
			t.Errorf("ran %d times; want 2", runs)
		}
		units := statetest.Read(t, st, func(v *state.View) ([]state.Unit, error) { return v.Units("mysql") })
		if got := unitNames(units); !cmp.Equal(got, []string{"mysql/0", "mysql/1"}) {
			t.Errorf("units: %q", got)
		}
	})
}

// TestUpdateIsConditionalOnWhatItListed checks that an update runs again if a key is added between its list
// of a prefix and its commit.
func TestUpdateIsConditionalOnWhatItListed(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		runs, seen := 0, 0
		statetest.Update(t, st, func(tx *state.Tx) error {
			runs++
			machines, err := tx.Machines()
			if err != nil {
				return err
			}
			seen = len(machines)
			if runs == 1 {
				statetest.Update(t, st, func(tx *state.Tx) error { _, err := tx.AddMachine(state.Machine{}); return err })
			}
			return tx.SetMachineStatus("0", state.MachineRunning, "")
		})
		if runs != 2 || seen != 2 {
			t.Errorf("ran %d times and saw %d machines; want 2 and 2", runs, seen)
		}
	})
}

func TestUpdateGivesUpWithItsContext(t *testing.T) {
	st := statetest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	runs := 0
	err := st.Update(ctx, func(tx *state.Tx) error {
		if runs++; runs == 3 {
			cancel()
		}
		if _, err := tx.Machines(); err != nil {
			return err
		}
		statetest.Update(t, st, func(tx *state.Tx) error { _, err := tx.AddMachine(state.Machine{}); return err })
		_, err := tx.AddMachine(state.Machine{})
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestUpdateAboveTheLimitsNamesTheDuty(t *testing.T) {
	st := statetest.New(t)
	err := st.Update(t.Context(), func(tx *state.Tx) error {
		for range 600 {
			if _, err := tx.AddMachine(state.Machine{}); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, state.ErrTooLarge) || !strings.Contains(fmt.Sprint(err), "the caller must split the update into batches") {
		t.Errorf("got %v", err)
	}
}

func TestViewPanicsAfterItsCall(t *testing.T) {
	st := statetest.New(t)
	var kept *state.View
	statetest.View(t, st, func(v *state.View) error { kept = v; return nil })
	defer func() {
		if r := recover(); !strings.HasPrefix(fmt.Sprint(r), "internal error: ") {
			t.Errorf("panicked with %v", r)
		}
	}()
	kept.Environment()
}

func TestViewReadsAtOneRevision(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.View(t, st, func(v *state.View) error {
			before, err := v.Machines()
			if err != nil {
				return err
			}
			statetest.Update(t, st, func(tx *state.Tx) error { _, err := tx.AddMachine(state.Machine{}); return err })
			after, err := v.Machines()
			if len(after) != len(before) {
				t.Errorf("machines went from %d to %d within a view", len(before), len(after))
			}
			return err
		})
	})
}

func TestNumbersAreUniqueUnderContention(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.MySQL(), 0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 5 {
					if err := st.Update(ctx, func(tx *state.Tx) error { _, err := tx.AddUnit("mysql", state.Placement{}); return err }); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		units := statetest.Read(t, st, func(v *state.View) ([]state.Unit, error) { return v.Units("mysql") })
		for i, u := range units {
			if u.Number != i {
				t.Fatalf("unit %d is %q", i, u.Name)
			}
		}
		if len(units) != 40 {
			t.Errorf("%d units; want 40", len(units))
		}
	})
}

func revision(t *testing.T, st *state.State) int64 {
	t.Helper()
	return statetest.Read(t, st, (*state.View).Revision)
}

func changes(pairs ...string) map[string]*string {
	m := map[string]*string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &pairs[i+1]
	}
	return m
}

func unitNames(units []state.Unit) (names []string) {
	for _, u := range units {
		names = append(names, u.Name)
	}
	return names
}
