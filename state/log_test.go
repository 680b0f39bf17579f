package state_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

func at(seconds int, level, message string) state.LogLine {
	return state.LogLine{Time: time.Unix(int64(seconds), 0).UTC(), Level: level, Message: message}
}

func appendLog(t *testing.T, st *state.State, source string, lines ...state.LogLine) {
	t.Helper()
	if err := st.AppendLog(t.Context(), source, lines); err != nil {
		t.Fatal(err)
	}
}

func TestLogs(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		appendLog(t, st, "a/1", at(1, "INFO", "one"), at(4, "ERROR", "four"))
		appendLog(t, st, "a/10", at(2, "DEBUG", "two"))
		appendLog(t, st, "machine-0", at(3, "WARNING", "three"))
		appendLog(t, st, "a/1", at(5, "INFO", "five"))
		for _, test := range []struct {
			filter state.LogFilter
			want   string
		}{
			{state.LogFilter{}, "one two three four five"},
			{state.LogFilter{Sources: []string{"a/1"}}, "one four five"},
			{state.LogFilter{Level: "warning"}, "three four"},
			{state.LogFilter{Last: 2}, "four five"},
			{state.LogFilter{Last: 1, Level: "ERROR"}, "four"},
			{state.LogFilter{After: map[string]int64{"a/1": 2, "a/10": 1}}, "three five"},
			{state.LogFilter{Sources: []string{"b/0"}}, ""},
		} {
			lines := statetest.Read(t, st, func(v *state.View) ([]state.LogLine, error) { return v.Logs(test.filter) })
			if got := messages(lines); got != test.want {
				t.Errorf("%+v: %q; want %q", test.filter, got, test.want)
			}
		}
		if err := st.View(t.Context(), func(v *state.View) error { _, err := v.Logs(state.LogFilter{Level: "LOUD"}); return err }); err == nil {
			t.Error("level LOUD was taken")
		}
	})
}

func messages(lines []state.LogLine) string {
	var texts []string
	for _, l := range lines {
		texts = append(texts, l.Message)
	}
	return strings.Join(texts, " ")
}

func TestLogIsBounded(t *testing.T) {
	st := statetest.New(t)
	long := strings.Repeat("é", 20<<10) // 40 KiB: a batch of its own
	for i := range 80 {
		appendLog(t, st, "a/1", at(i, "INFO", fmt.Sprint(i, long)))
	}
	lines := statetest.Read(t, st, func(v *state.View) ([]state.LogLine, error) { return v.Logs(state.LogFilter{}) })
	if len(lines) != 64 || lines[0].Seq != 17 || lines[63].Seq != 80 {
		t.Errorf("%d lines, from %d to %d", len(lines), lines[0].Seq, lines[len(lines)-1].Seq)
	}
	appendLog(t, st, "a/2", at(1, "INFO", strings.Repeat("é", 100<<10)))
	lines = statetest.Read(t, st, func(v *state.View) ([]state.LogLine, error) { return v.Logs(state.LogFilter{Sources: []string{"a/2"}}) })
	kept, cut, ok := strings.Cut(lines[0].Message, "...")
	if n := len(lines[0].Message); n > 64<<10 || n < 60<<10 || strings.Trim(kept, "é") != "" {
		t.Errorf("a long message was cut to %d bytes", n)
	}
	if want := fmt.Sprintf(" (%d bytes cut off)", 200<<10-len(kept)); !ok || cut != want {
		t.Errorf("a long message ends with %q, want %q", cut, want)
	}
}

// TestLongestLineOfAHookIsUncut: the outputs of hooks come in lines of at most hookexec.MaxLine.
func TestLongestLineOfAHookIsUncut(t *testing.T) {
	st := statetest.New(t)
	long := strings.Repeat("x", 60<<10)
	line := at(1, "INFO", long)
	line.Hook = strings.Repeat("h", 200)
	appendLog(t, st, "a/1", line)

	lines := statetest.Read(t, st, func(v *state.View) ([]state.LogLine, error) { return v.Logs(state.LogFilter{}) })
	if len(lines) != 1 || lines[0].Message != long {
		t.Errorf("%d lines, the first with %d bytes", len(lines), len(lines[0].Message))
	}
}

func TestManyShortLinesShareABatch(t *testing.T) {
	st := statetest.New(t)
	for i := range 1000 {
		appendLog(t, st, "a/1", at(i, "INFO", "hello"))
	}
	var many []state.LogLine
	for i := range 3000 {
		many = append(many, at(1000+i, "INFO", "hello"))
	}
	appendLog(t, st, "a/1", many...)
	lines := statetest.Read(t, st, func(v *state.View) ([]state.LogLine, error) { return v.Logs(state.LogFilter{}) })
	if len(lines) != 4000 {
		t.Errorf("%d lines are left of 4000", len(lines))
	}
	for i, l := range lines {
		if l.Seq != int64(i+1) || l.Time.Unix() != int64(i) {
			t.Fatalf("line %d has number %d and time %v", i, l.Seq, l.Time)
		}
	}
}

func TestFollowLogs(t *testing.T) {
	st := statetest.New(t)
	appendLog(t, st, "a/1", at(1, "INFO", "one"))
	w, err := st.Watch(t.Context(), revision(t, st), state.WatchLogs())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	appendLog(t, st, "a/1", at(2, "INFO", "two"))
	keys, err := w.Next(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	source, ok := state.LogSource(keys[0])
	if !ok || source != "a/1" {
		t.Fatalf("%q is of %q", keys[0], source)
	}
	lines := statetest.Read(t, st, func(v *state.View) ([]state.LogLine, error) {
		return v.Logs(state.LogFilter{Sources: []string{source}, After: map[string]int64{"a/1": 1}})
	})
	want := at(2, "INFO", "two")
	want.Source, want.Seq = "a/1", 2
	if d := cmp.Diff([]state.LogLine{want}, lines); d != "" {
		t.Error(d)
	}
}
