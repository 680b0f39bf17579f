package outage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// played is a record from words: HOOK, or KIND:RELATION:MEMBER:MEMBERS with
// members joined by commas; a ! behind it fails, "KILLED" is a kill of everything.
func played(words string) (events []event) {
	for n, word := range strings.Fields(words) {
		if word == "KILLED" {
			events = append(events, event{Event: "killed"})
			continue
		}
		word, failed := strings.CutSuffix(word, "!")
		e := event{Event: "begin", Hook: word, PID: n + 1, Client: fmt.Sprint(n)}
		if parts := strings.Split(word, ":"); len(parts) == 4 {
			e.Hook, e.ID, e.Remote = "s-relation-"+parts[0], "s:"+parts[1], parts[2]
			e.Members = strings.ReplaceAll(parts[3], ",", " ")
		}
		events = append(events, e, event{Event: "end", PID: e.PID, Exit: map[bool]int{true: 1}[failed]})
	}
	return events
}

// TestRulesCanFail shows the judge records that break each rule, and some that
// break none.
func TestRulesCanFail(t *testing.T) {
	const begun = "install config-changed start "
	for _, c := range []struct{ words, want string }{
		{begun + "joined:1:a/0:a/0 changed:1:a/0:a/0 changed:1:a/0:a/0 departed:1:a/0: broken:1:: stop", ""},
		{"install config-changed config-changed start", ""},
		{begun + "joined:1:a/0:a/0! joined:1:a/0:a/0 changed:1:a/0:a/0", ""},
		{begun + "joined:1:a/0:a/0 joined:1:a/1:a/0,a/1 departed:1:a/0:a/1", ""},
		{begun + "joined:1:a/0:a/0 KILLED joined:1:a/0:a/0 changed:1:a/0:a/0", ""},
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
		got := strings.Join(violations(played(c.words)), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.words, got, c.want)
		}
	}
}

// TestRecordsCanBeWrong is about lines that do not belong together, and numbers
// that go back.
func TestRecordsCanBeWrong(t *testing.T) {
	begin := func(pid int, client string) event {
		return event{Event: "begin", Hook: "install", PID: pid, Client: client}
	}
	_, beside := runs([]event{begin(1, "a"), begin(2, "b"), {Event: "end", PID: 1}})
	want := []string{"install began beside install", " went on after its successor had begun"}
	if diff := cmp.Diff(want, beside); diff != "" {
		t.Errorf("hooks that overlap (-want +got):\n%s", diff)
	}
	back := played("install config-changed start joined:1:a/0:a/0 changed:1:a/0:a/0 changed:1:a/0:a/0")
	for i, n := range map[int]string{8: "7", 10: "6"} {
		back[i].Settings = map[string]string{"beat": n}
	}
	if got := strings.Join(violations(back), "\n"); !strings.Contains(got, "sees beat 6 after 7") {
		t.Errorf("a number that goes back: %q", got)
	}
	if got := violations([]event{begin(1, "a"), {Event: "end", PID: 1, Exit: 1}, begin(2, "a")}); len(got) != 1 {
		t.Errorf("a client id used twice: %q", got)
	}
}
