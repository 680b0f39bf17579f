package logs_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/logs"
	"bijou/state/store"
	"bijou/state/sweep"
	"bijou/testscripts/kit/statetest"
)

func at(seconds int, level, message string) logs.Line {
	return logs.Line{Time: time.Unix(int64(seconds), 0).UTC(), Level: level, Message: message}
}

func appendLog(t *testing.T, st *state.State, source string, lines ...logs.Line) {
	t.Helper()
	if err := logs.Append(t.Context(), st, source, lines); err != nil {
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
			filter logs.Filter
			want   string
		}{
			{logs.Filter{}, "one two three four five"},
			{logs.Filter{Sources: []string{"a/1"}}, "one four five"},
			{logs.Filter{Level: "warning"}, "three four"},
			{logs.Filter{Last: 2}, "four five"},
			{logs.Filter{Last: 1, Level: "ERROR"}, "four"},
			{logs.Filter{After: map[string]int64{"a/1": 2, "a/10": 1}}, "three five"},
			{logs.Filter{Sources: []string{"b/0"}}, ""},
		} {
			lines := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, test.filter) })
			if got := messages(lines); got != test.want {
				t.Errorf("%+v: %q; want %q", test.filter, got, test.want)
			}
		}
		if err := st.View(t.Context(), func(v *state.View) error { _, err := logs.Read(v, logs.Filter{Level: "LOUD"}); return err }); err == nil {
			t.Error("level LOUD was taken")
		}
	})
}

func messages(lines []logs.Line) string {
	var texts []string
	for _, l := range lines {
		texts = append(texts, l.Message)
	}
	return strings.Join(texts, " ")
}

func TestLogIsBounded(t *testing.T) {
	st := statetest.New(t)
	long := strings.Repeat("é", 20<<10) // 40 KiB, which need a separate batch
	for i := range 80 {
		appendLog(t, st, "a/1", at(i, "INFO", fmt.Sprint(i, long)))
	}
	lines := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{}) })
	if len(lines) != 64 || lines[0].Seq != 17 || lines[63].Seq != 80 {
		t.Errorf("%d lines, from %d to %d", len(lines), lines[0].Seq, lines[len(lines)-1].Seq)
	}
	appendLog(t, st, "a/2", at(1, "INFO", strings.Repeat("é", 100<<10)))
	lines = statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{Sources: []string{"a/2"}}) })
	kept, cut, ok := strings.Cut(lines[0].Message, "...")
	if n := len(lines[0].Message); n > 64<<10 || n < 60<<10 || strings.Trim(kept, "é") != "" {
		t.Errorf("a long message was cut to %d bytes", n)
	}
	if want := fmt.Sprintf(" (%d bytes cut off)", 200<<10-len(kept)); !ok || cut != want {
		t.Errorf("a long message ends with %q, want %q", cut, want)
	}
}

// TestLongestLineOfAHookIsUncut checks that the log keeps a hook's longest possible line,
// hookexec.MaxLine, in full.
func TestLongestLineOfAHookIsUncut(t *testing.T) {
	st := statetest.New(t)
	long := strings.Repeat("x", 60<<10)
	line := at(1, "INFO", long)
	line.Hook = strings.Repeat("h", 200)
	appendLog(t, st, "a/1", line)

	lines := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{}) })
	if len(lines) != 1 || lines[0].Message != long {
		t.Errorf("%d lines, the first with %d bytes", len(lines), len(lines[0].Message))
	}
}

// TestBatchesAreBoundedAsStored checks that lines whose text takes more bytes in the store than in memory still
// make batches that a gateway accepts, and that fit in one transaction.
func TestBatchesAreBoundedAsStored(t *testing.T) {
	for _, char := range []string{"x", `"`, "\x00", "\xff", "\u2028"} {
		t.Run(strconv.Quote(char), func(t *testing.T) {
			st := statetest.New(t)
			message := strings.Repeat(char, 64<<10/len(char))
			all := map[string][]logs.Line{}
			for n := range logs.MaxPerUpdate {
				source := fmt.Sprintf("application-with-a-long-name/%d", n)
				all[source] = []logs.Line{at(1, "CRITICAL", message), at(2, "INFO", message[:20<<10]), at(3, "INFO", "short")}
			}
			if _, err := logs.AppendAll(t.Context(), st, all); err != nil {
				t.Fatal(err)
			}

			statetest.View(t, st, func(v *state.View) error {
				kvs, err := v.Keys().List("log/")
				for _, kv := range kvs {
					if len(kv.Value) > 65<<10 {
						t.Errorf("%s has %d bytes", kv.Key, len(kv.Value))
					}
				}
				return err
			})
			lines := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{}) })
			if len(lines) != 3*logs.MaxPerUpdate {
				t.Errorf("%d lines, want three of each log", len(lines))
			}
			kept, cut, ok := strings.Cut(lines[0].Message, "...")
			rest := len(message) - len(kept)
			if char != "\xff" && ok && cut != fmt.Sprintf(" (%d bytes cut off)", rest) {
				t.Errorf("the message ends with %q, but %d bytes are missing", cut, rest)
			}
		})
	}
}

func TestManyShortLinesShareABatch(t *testing.T) {
	st := statetest.New(t)
	for i := range 1000 {
		appendLog(t, st, "a/1", at(i, "INFO", "hello"))
	}
	var many []logs.Line
	for i := range 3000 {
		many = append(many, at(1000+i, "INFO", "hello"))
	}
	appendLog(t, st, "a/1", many...)
	lines := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{}) })
	if len(lines) != 4000 {
		t.Errorf("%d lines are left of 4000", len(lines))
	}
	for i, l := range lines {
		if l.Seq != int64(i+1) || l.Time.Unix() != int64(i) {
			t.Fatalf("line %d has number %d and time %v", i, l.Seq, l.Time)
		}
	}
}

// TestDamagedBatchIsLeft checks that a log continues in a new batch after its newest one was damaged or lost, and that
// the numbers of its lines go on.
func TestDamagedBatchIsLeft(t *testing.T) {
	for name, op := range map[string]store.Op{
		"damaged": {Key: keys.LogBatch("a/1", 1), Value: []byte("nothing that can be read")},
		"lost":    {Key: keys.LogBatch("a/1", 1), Delete: true},
	} {
		t.Run(name, func(t *testing.T) {
			st := statetest.New(t)
			appendLog(t, st, "a/1", at(1, "INFO", "one"), at(2, "INFO", "two"))
			if _, err := st.Store().Commit(t.Context(), store.Txn{Ops: []store.Op{op}}); err != nil {
				t.Fatal(err)
			}

			appendLog(t, st, "a/1", at(3, "INFO", "three"))
			lines := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{}) })
			if messages(lines) != "three" || lines[0].Seq != 3 {
				t.Errorf("got %+v, want three, with the number 3", lines)
			}
		})
	}
}

func TestFollowLogs(t *testing.T) {
	st := statetest.New(t)
	appendLog(t, st, "a/1", at(1, "INFO", "one"))
	revision := statetest.Read(t, st, (*state.View).Revision)
	w, err := st.Watch(t.Context(), revision, logs.Watch())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	appendLog(t, st, "a/1", at(2, "INFO", "two"))
	changed, err := w.Next(t.Context())
	if err != nil || len(changed) != 1 {
		t.Fatal(changed, err)
	}
	source, ok := strings.CutPrefix(changed[0], keys.LogHeads)
	if !ok || source != "a/1" {
		t.Fatalf("%q is of %q", changed[0], source)
	}
	lines := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) {
		return logs.Read(v, logs.Filter{Sources: []string{source}, After: map[string]int64{"a/1": 1}})
	})
	want := at(2, "INFO", "two")
	want.Source, want.Seq = "a/1", 2
	if d := cmp.Diff([]logs.Line{want}, lines); d != "" {
		t.Error(d)
	}
}

func TestSweepTakesOldLogsOfWhatIsGone(t *testing.T) {
	st := statetest.New(t)
	statetest.AddService(t, st, statetest.MySQL(), 1)
	for _, source := range []string{"mysql/0", "mysql/1", "machine-0", "machine-7"} {
		appendLog(t, st, source, logs.Line{Time: time.Now(), Level: "INFO", Message: source})
	}
	for _, test := range []struct {
		now  time.Time
		want string
	}{{time.Now(), "mysql/0 mysql/1 machine-0 machine-7"}, {time.Now().Add(30 * 24 * time.Hour), "mysql/0 machine-0"}} {
		if err := sweep.Run(t.Context(), st, test.now); err != nil {
			t.Fatal(err)
		}
		lines := statetest.Read(t, st, func(v *state.View) ([]logs.Line, error) { return logs.Read(v, logs.Filter{}) })
		if got := messages(lines); got != test.want {
			t.Errorf("%q; want %q", got, test.want)
		}
	}
}
