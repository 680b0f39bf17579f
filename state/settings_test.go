package state_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/status"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

func TestMergeSettings(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		r := statetest.Pair(t, st)
		statetest.Enter(t, st, r.ID, "mysql/0", map[string]string{"private-address": "10.0.0.1", "b": "2"})
		var changed []state.Change
		statetest.Update(t, st, func(tx *state.Tx) (err error) {
			changed, err = tx.MergeSettings(r.ID, "mysql/0", map[string]*string{"a": ptr("1"), "b": nil, "private-address": ptr("10.0.0.1")})
			return err
		})
		want := []state.Change{{Key: "a", New: ptr("1")}, {Key: "b", Old: ptr("2")}}
		if d := cmp.Diff(want, changed); d != "" {
			t.Error(d)
		}
		statetest.View(t, st, func(v *state.View) error {
			got, err := v.Settings(r.ID, "mysql/0")
			if d := cmp.Diff(state.Settings{Version: 2, Values: map[string]string{"private-address": "10.0.0.1", "a": "1"}}, got); d != "" {
				t.Error(d)
			}
			m, in, merr := v.Member(r.ID, "mysql/0")
			if !in || m.Version != 2 {
				t.Errorf("member: %+v, %v", m, in)
			}
			return errors.Join(err, merr)
		})
	})
}

func TestSettingsOfOneWhoNeverWas(t *testing.T) {
	st := statetest.New(t)
	r := statetest.Pair(t, st)
	err := st.View(t.Context(), func(v *state.View) error { _, err := v.Settings(r.ID, "mysql/0"); return err })
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	err = st.Update(t.Context(), func(tx *state.Tx) error { _, err := tx.MergeSettings(r.ID, "mysql/0", changes("a", "b")); return err })
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestSettingsAreRefused(t *testing.T) {
	st := statetest.New(t)
	r := statetest.Pair(t, st)
	statetest.Enter(t, st, r.ID, "mysql/0", nil)
	for name, c := range map[string]map[string]*string{
		"not UTF-8": changes("a", "\xff"), "NUL": changes("a", "b\x00"), "NUL in the key": changes("a\x00", "b"),
		"no key": changes("", "b"), "too long": changes("a", strings.Repeat("x", state.MaxSetting+1)),
	} {
		err := st.Update(t.Context(), func(tx *state.Tx) error { _, err := tx.MergeSettings(r.ID, "mysql/0", c); return err })
		if err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestLargeSettings checks that large nodes are stored as blobs. Changes must be merged into them, and may
// make a node small again.
func TestLargeSettings(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		r := statetest.Pair(t, st)
		statetest.Enter(t, st, r.ID, "mysql/0", map[string]string{"small": "1"})
		large := strings.Repeat("naïve 0123456789", 10<<20/17)
		statetest.Update(t, st, func(tx *state.Tx) error {
			if _, err := tx.MergeSettings(r.ID, "mysql/0", map[string]*string{"large": &large}); err != nil {
				return err
			}
			s, err := tx.Settings(r.ID, "mysql/0")
			if s.Values["large"] != large {
				t.Error("the own write is not seen")
			}
			return err
		})
		statetest.Update(t, st, func(tx *state.Tx) error {
			_, err := tx.MergeSettings(r.ID, "mysql/0", changes("small", "2"))
			return err
		})
		get := func() state.Settings {
			return statetest.Read(t, st, func(v *state.View) (state.Settings, error) { return v.Settings(r.ID, "mysql/0") })
		}
		if s := get(); s.Values["large"] != large || s.Values["small"] != "2" || s.Version != 3 {
			t.Errorf("version %d, small %q, large of %d bytes", s.Version, s.Values["small"], len(s.Values["large"]))
		}
		if err := sweep.Run(t.Context(), st, later()); err != nil {
			t.Fatal(err)
		}
		if s := get(); s.Values["large"] != large {
			t.Error("a sweep took what is referred to")
		}
		statetest.Update(t, st, func(tx *state.Tx) error {
			_, err := tx.MergeSettings(r.ID, "mysql/0", map[string]*string{"large": nil})
			return err
		})
		if d := cmp.Diff(map[string]string{"small": "2"}, get().Values); d != "" {
			t.Error(d)
		}
	})
}

func TestAppSettings(t *testing.T) {
	st := statetest.New(t)
	r := statetest.Pair(t, st)
	get := func() state.Settings {
		return statetest.Read(t, st, func(v *state.View) (state.Settings, error) { return v.AppSettings(r.ID, "mysql") })
	}
	if d := cmp.Diff(state.Settings{Values: map[string]string{}}, get()); d != "" {
		t.Error(d)
	}
	statetest.Update(t, st, func(tx *state.Tx) error { _, err := tx.MergeAppSettings(r.ID, "mysql", changes("a", "1")); return err })
	if d := cmp.Diff(state.Settings{Version: 1, Values: map[string]string{"a": "1"}}, get()); d != "" {
		t.Error(d)
	}
	err := st.Update(t.Context(), func(tx *state.Tx) error { _, err := tx.MergeAppSettings(r.ID, "nobody", changes("a", "1")); return err })
	if !errors.Is(err, state.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func ptr(s string) *string { return &s }

// TestSettingsOfADamagedBlob checks a unit whose settings refer to a missing blob or to a blob without
// settings. Other units must be able to read the other settings of the relation, and the error must name the
// unit.
func TestSettingsOfADamagedBlob(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		r := statetest.Pair(t, st)
		statetest.Enter(t, st, r.ID, "mysql/0", map[string]string{"a": "b"})
		statetest.Enter(t, st, r.ID, "wordpress/0", nil)
		noSettings, _, err := st.Keys().PutBlob(t.Context(), strings.NewReader("no settings"))
		check(t, err)

		key := keys.Settings(r.ID, "wordpress/0")
		for name, blob := range map[string]string{"not there": strings.Repeat("a", 64), "no settings": noSettings} {
			t.Run(name, func(t *testing.T) {
				statetest.Update(t, st, func(tx *state.Tx) error {
					_, _, err := tx.Keys().Get(key)
					return errors.Join(err, tx.Keys().Put(key, struct {
						Version int    `json:"version"`
						Blob    string `json:"blob"`
					}{2, blob}))
				})

				statetest.View(t, st, func(v *state.View) error {
					if _, err := v.Settings(r.ID, "wordpress/0"); err == nil || !strings.Contains(err.Error(), key) {
						t.Errorf("read: %v", err)
					}
					d, err := status.ReadUnit(v, "mysql/0", status.Options{Now: time.Now()}, func(*state.View, string) (string, error) { return "", nil })
					if err != nil {
						return err
					}
					related := d.Relations[slices.IndexFunc(d.Relations, func(one status.RelationDetail) bool { return one.ID == r.ID })]
					if related.LocalUnit.Data["a"] != "b" || !related.RelatedUnits["wordpress/0"].InScope {
						t.Errorf("shown is %+v", related)
					}
					if damage := v.TakeDamage(); damage[key] == nil {
						t.Errorf("reported is %v", damage)
					}
					return nil
				})
			})
		}
	})
}
