package judge

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// played creates a record from words. A word is HOOK, or KIND:RELATION:MEMBER:MEMBERS with members joined by
// commas. A final ! makes the hook fail, and @N gives the hook's revision. "KILLED" kills everything. DIED is
// an agent's death with nothing running, DIED-LAST with the last hook, and DIED-HOOK with a hook that has not
// begun. EXCUSED-HOOK is a hook that the operator resolved.
func played(words string) (events []Event) {
	for n, word := range strings.Fields(words) {
		if word == "KILLED" {
			events = append(events, Event{Event: "killed"})
			continue
		}
		if inFlight, ok := strings.CutPrefix(word, "DIED"); ok {
			e := Event{Event: Died, Hook: strings.TrimPrefix(inFlight, "-"), Client: "next"}
			switch e.Hook {
			case "":
				e.Client = ""
			case "LAST":
				e.Client = events[len(events)-2].Client
			}
			events = append(events, e)
			continue
		}
		if excused, ok := strings.CutPrefix(word, "EXCUSED-"); ok {
			events = append(events, Event{Event: Resolved, Hook: excused})
			continue
		}
		word, revision, _ := strings.Cut(word, "@")
		word, failed := strings.CutSuffix(word, "!")
		e := Event{Event: "begin", Hook: word, PID: n + 1, Client: fmt.Sprint(n)}
		e.Revision, _ = strconv.Atoi(revision)
		if parts := strings.Split(word, ":"); len(parts) == 4 {
			e.Hook, e.ID, e.Remote = "s-relation-"+parts[0], "s:"+parts[1], parts[2]
			e.Members = strings.ReplaceAll(parts[3], ",", " ")
		}
		events = append(events, e, Event{Event: "end", PID: e.PID, Exit: map[bool]int{true: 1}[failed]})
	}
	return events
}

// TestRulesCanFail judges records that break each rule, and records that break none.
func TestRulesCanFail(t *testing.T) {
	const begun = "install config-changed start "
	for _, c := range []struct{ words, want string }{
		{begun + "joined:1:a/0:a/0 changed:1:a/0:a/0 changed:1:a/0:a/0 departed:1:a/0: broken:1:: stop", ""},
		{"install config-changed config-changed start", ""},
		{begun + "joined:1:a/0:a/0! joined:1:a/0:a/0 changed:1:a/0:a/0", ""},
		{begun + "joined:1:a/0:a/0 joined:1:a/1:a/0,a/1 departed:1:a/0:a/1", ""},
		{begun + "joined:1:a/0:a/0 KILLED joined:1:a/0:a/0 changed:1:a/0:a/0", ""},
		{begun + "joined:1:a/0:a/0 departed:1:a/0: broken:1:: KILLED broken:1::", ""},
		{begun + "joined:1:a/0:a/0 departed:1:a/0: broken:1:: broken:1::", "runs after broken"},
		{begun + "DIED config-changed joined:1:a/0:a/0", ""},
		{"install DIED-LAST install config-changed start", ""},
		{"install KILLED install config-changed start", ""},
		{"install KILLED config-changed start", ""},
		{"install KILLED install install", "comes after [install]"},
		{"install KILLED start", "want config-changed"},
		{"install DIED-config-changed config-changed start", ""},
		{begun + "joined:1:a/0:a/0 DIED-LAST joined:1:a/0:a/0 changed:1:a/0:a/0", ""},
		{begun + "upgrade-charm@1 config-changed@1 joined:1:a/0:a/0@1", ""},
		{begun + "upgrade-charm@1! DIED upgrade-charm@1 upgrade-charm@2 config-changed@2", ""},
		{begun + "DIED-LAST config-changed", "start  has failed and comes first"},
		{begun + "DIED-config-changed joined:1:a/0:a/0", "config-changed  has failed and comes first"},
		{begun + "config-changed@1", "before upgrade-charm"},
		{"install! EXCUSED-install config-changed@1 start@1", ""},
		{"install! EXCUSED-install config-changed start@1", "before upgrade-charm"},
		{"install config-changed! EXCUSED-config-changed start@1", "before upgrade-charm"},
		{begun + "upgrade-charm@1 joined:1:a/0:a/0@1 config-changed@1", "between upgrade-charm and config-changed"},
		{begun + "upgrade-charm@1 stop@1", ""},
		{"install DIED install", "comes after [install]"},
		{"install start", "want config-changed"},
		{"joined:1:a/0:a/0", "before the unit has started"},
		{begun + "changed:1:a/0:a/0", "is not in"},
		{begun + "joined:1:a/0:a/0 joined:1:a/0:a/0", "has joined already"},
		{begun + "joined:1:a/0:a/0 joined:1:a/1:a/0,a/1 changed:1:a/0:a/0", "does not directly follow its joined"},
		{begun + "joined:1:a/0:a/0! changed:1:a/0:a/0", "has failed and comes first"},
		{begun + "joined:1:a/0:a/0 changed:1:a/0:a/0 broken:1::", "although a/0 is in"},
		{begun + "broken:1:: joined:1:a/0:a/0", "runs after broken"},
		{begun + "joined:1:a/0:a/1", "members are"},
		{begun + "joined:1:a/0:a/0 departed:1:a/0:a/0", "members are"},
		{begun + "stop config-changed", "runs after stop"},
	} {
		got := strings.Join(Violations(played(c.words)), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.words, got, c.want)
		}
	}
}

// TestOwedAndLeaked checks that the judge reports hooks that must still run, and numbers that no hook
// committed.
func TestOwedAndLeaked(t *testing.T) {
	const begun = "install config-changed start "
	for _, c := range []struct{ words, want string }{
		{begun + "DIED config-changed", ""},
		{begun + "DIED", "config-changed after a restart"},
		{begun + "DIED-LAST", "not run again start"},
		{begun + "joined:1:a/0:a/0!", "not run again s-relation-joined a/0"},
		{begun + "upgrade-charm@1", "config-changed after"},
	} {
		got := strings.Join(owed("u/0", hearAll(played(c.words))), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.words, got, c.want)
		}
	}
	const left = begun + "joined:1:a/0:a/0 departed:1:a/0: "
	for _, c := range []struct{ words, want string }{
		{left, "has not been told that relation 1 is broken"},
		{left + "broken:1::! KILLED", "has not been told that relation 1 is broken"},
		{left + "broken:1::", ""},
		{left + "broken:1:: KILLED", ""}, // its result is recorded, or it runs again
		{left + "broken:1:: KILLED broken:1::", ""},
	} {
		got := strings.Join(Missing(End{units: []string{"u/0"}}, map[string][]Event{"u/0": played(c.words)}), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.words, got, c.want)
		}
	}
	writer := played("config-changed joined:1:a/0:a/0!")
	wrote := func(pid, beat int) Event { return Event{Event: Wrote, PID: pid, Beat: beat, IDs: "r:1"} }
	writer = []Event{writer[0], wrote(1, 7), writer[1], writer[2], wrote(2, 8), writer[3]}
	reader := played("joined:1:w/0:w/0 changed:1:w/0:w/0")
	for _, seen := range []string{"7", "8"} {
		reader[2].Settings = map[string]string{"beat": seen}
		got := Leaked(map[string][]Event{"w/0": writer, "r/0": reader})
		if want := map[string]int{"7": 0, "8": 1}[seen]; len(got) != want {
			t.Errorf("beat %s: %q", seen, got)
		}
	}
}

// TestRecordsCanBeWrong checks that the judge reports lines that do not belong together, and numbers that
// decrease.
func TestRecordsCanBeWrong(t *testing.T) {
	begin := func(pid int, client string) Event {
		return Event{Event: "begin", Hook: "install", PID: pid, Client: client}
	}
	_, beside := Runs([]Event{begin(1, "a"), begin(2, "b"), {Event: "end", PID: 1}})
	want := []string{"install began beside install", " went on after its successor had begun"}
	if diff := cmp.Diff(want, beside); diff != "" {
		t.Errorf("hooks that overlap (-want +got):\n%s", diff)
	}
	back := played("install config-changed start joined:1:a/0:a/0 changed:1:a/0:a/0 changed:1:a/0:a/0")
	for i, n := range map[int]string{8: "7", 10: "6"} {
		back[i].Settings = map[string]string{"beat": n}
	}
	if got := strings.Join(Violations(back), "\n"); !strings.Contains(got, "sees beat 6 after 7") {
		t.Errorf("a number that goes back: %q", got)
	}
	if got := Violations([]Event{begin(1, "a"), {Event: "end", PID: 1, Exit: 1}, begin(2, "a")}); len(got) != 1 {
		t.Errorf("a client id used twice: %q", got)
	}
}
