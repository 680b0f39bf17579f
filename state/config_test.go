package state_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/testscripts/kit/statetest"
)

func TestConfig(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.AddService(t, st, statetest.MySQL(), 0)
		for _, step := range []struct {
			change  map[string]any
			changed []string
			err     string
			want    state.Config
		}{
			{nil, nil, "", state.Config{Values: map[string]any{}}},
			{map[string]any{"tuning": "fast", "max-connections": "7", "ratio": "2", "debug": "true"},
				[]string{"debug", "max-connections", "ratio", "tuning"}, "",
				state.Config{Version: 1, Values: map[string]any{"tuning": "fast", "max-connections": int64(7), "ratio": 2.0, "debug": true}}},
			{map[string]any{"tuning": "fast", "ratio": 2.0, "max-connections": 7}, nil, "",
				state.Config{Version: 1, Values: map[string]any{"tuning": "fast", "max-connections": int64(7), "ratio": 2.0, "debug": true}}},
			{map[string]any{"debug": nil, "ratio": 1e300, "max-connections": int64(1)<<62 + 1}, []string{"debug", "max-connections", "ratio"}, "",
				state.Config{Version: 2, Values: map[string]any{"tuning": "fast", "max-connections": int64(1)<<62 + 1, "ratio": 1e300}}},
			{map[string]any{"tuning": "x", "nope": "1"}, nil, `unknown option "nope"`,
				state.Config{Version: 2, Values: map[string]any{"tuning": "fast", "max-connections": int64(1)<<62 + 1, "ratio": 1e300}}},
			{map[string]any{"nope": nil}, nil, `unknown option "nope"`,
				state.Config{Version: 2, Values: map[string]any{"tuning": "fast", "max-connections": int64(1)<<62 + 1, "ratio": 1e300}}},
			{map[string]any{"max-connections": "many"}, nil, "is not an int",
				state.Config{Version: 2, Values: map[string]any{"tuning": "fast", "max-connections": int64(1)<<62 + 1, "ratio": 1e300}}},
		} {
			var changed []string
			err := st.Update(t.Context(), func(tx *state.Tx) (err error) {
				changed, err = tx.SetConfig("mysql", step.change)
				return err
			})
			if (err != nil) != (step.err != "") || err != nil && !strings.Contains(err.Error(), step.err) {
				t.Errorf("%v: %v", step.change, err)
			}
			got := statetest.Read(t, st, func(v *state.View) (state.Config, error) { return v.Config("mysql") })
			if d := cmp.Diff(step.want, got) + cmp.Diff(step.changed, changed); d != "" {
				t.Errorf("%v: %s", step.change, d)
			}
		}
		got := statetest.Read(t, st, func(v *state.View) (map[string]any, error) { return v.EffectiveConfig("mysql", "") })
		want := map[string]any{"tuning": "fast", "max-connections": int64(1)<<62 + 1, "ratio": 1e300, "debug": nil}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func TestEnvironmentIsChecked(t *testing.T) {
	st := statetest.New(t)
	for _, test := range []struct{ key, value, want string }{
		{state.RetryHooks, "false", ""},
		{state.RetryHooks, "no", "want true or false"},
		{state.StatusInterval, "0", ""},
		{state.StatusInterval, "5", "want a duration"},
		{state.StatusInterval, "-5m", "want a duration"},
		{state.HookConcurrency, "4", ""},
		{state.HookConcurrency, "0", "want a number from 1"},
		{"colour", "red", `unknown model setting "colour"`},
	} {
		err := st.Update(t.Context(), func(tx *state.Tx) error {
			return tx.SetEnvironment(map[string]*string{test.key: &test.value})
		})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s=%s: %v", test.key, test.value, err)
		}
	}
	e := statetest.Read(t, st, (*state.View).Environment)
	if e.RetryHooks() || e.StatusInterval() != 0 || e.HookConcurrency() != 4 {
		t.Errorf("got %+v", e)
	}
	if e := statetest.Environment(); !e.RetryHooks() || e.StatusInterval().Minutes() != 5 || e.HookConcurrency() != 0 {
		t.Errorf("the defaults are %v, %v, %v", e.RetryHooks(), e.StatusInterval(), e.HookConcurrency())
	}
}

// TestUnknownSettingsAreKept checks that a newer binary's setting remains when this binary changes other
// settings, and does not prevent that.
func TestUnknownSettingsAreKept(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		statetest.Update(t, st, func(tx *state.Tx) error {
			e, err := tx.Environment()
			if err != nil {
				return err
			}
			e.Config = map[string]string{"colour": "red", "name": "x", state.HarvestMode: "gently", state.HookConcurrency: "2"}
			return tx.Keys().Put(keys.Environment, e)
		})
		set := func(key string, value *string) error {
			return st.Update(t.Context(), func(tx *state.Tx) error { return tx.SetEnvironment(map[string]*string{key: value}) })
		}
		want := map[string]string{"colour": "red", "name": "x", state.HarvestMode: "gently", state.HookConcurrency: "3", state.RetryHooks: "false"}
		for _, step := range []struct {
			key   string
			value *string
			err   string
		}{
			{state.HookConcurrency, new("3"), ""},
			{state.RetryHooks, new("false"), ""},
			{"colour", new("blue"), `unknown model setting "colour"`},
			{"shape", new("round"), `unknown model setting "shape"`},
			{state.HarvestMode, new("gently"), "want destroyed"},
			{state.StatusInterval, nil, ""},
		} {
			if err := set(step.key, step.value); (err != nil) != (step.err != "") || err != nil && !strings.Contains(err.Error(), step.err) {
				t.Errorf("%s: %v", step.key, err)
			}
			e := statetest.Read(t, st, (*state.View).Environment)
			if step.key == state.StatusInterval {
				if diff := cmp.Diff(want, e.Config); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]string{"colour", "name"}, e.UnknownSettings()); diff != "" {
					t.Error(diff)
				}
			}
		}
		if err := set("colour", nil); err != nil {
			t.Errorf("it cannot be taken away: %v", err)
		}
		if e := statetest.Read(t, st, (*state.View).Environment); e.Config["colour"] != "" {
			t.Errorf("left: %v", e.Config)
		}
	})
}
