package hookexec

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestActionsAndCommands(t *testing.T) {
	c := newCharm(t)
	if err := os.MkdirAll(filepath.Join(c.dir, "charm", "actions"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.script("actions/backup", "printf 'raw\\0%s' \"$JUJU_ACTION_NAME\"", 0o755)
	c.script("actions/plain", "exit 0", 0o644)
	for _, tc := range []struct {
		name    string
		action  string
		command []string
		want    Outcome
		output  string
	}{
		{"an action", "backup", nil, Outcome{}, "raw\x00backup"},
		{"not executable", "plain", nil, Outcome{Failure: "actions/plain is not executable"}, ""},
		{"missing", "none", nil, Outcome{Failure: "the charm has neither actions/none nor dispatch"}, ""},
		{"a line for a shell", "", []string{"echo a; false | true; exit 7"}, Outcome{Failure: "exit code 7", Code: 7}, "a\n"},
		{"a program", "", []string{"echo", "a b", "$HOME", "--", ""}, Outcome{}, "a b $HOME -- \n"},
		{"no such program", "", []string{"no-such-program", "x"}, Outcome{Failure: "exit code 127", Code: 127}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := c.spec(tc.name)
			s.Action, s.Command = tc.action, tc.command
			s.Env = append(s.Env, "JUJU_ACTION_NAME="+tc.action)
			var mu sync.Mutex
			var out bytes.Buffer
			s.Raw = func(stream Stream, data []byte) {
				mu.Lock()
				defer mu.Unlock()
				if stream == Stdout {
					out.Write(data)
				}
			}
			got := c.runner.Run(t.Context(), s)
			if diff := cmp.Diff(tc.want, got); diff != "" || out.String() != tc.output {
				t.Errorf("%s: output %q, outcome (-want +got):\n%s", tc.name, out.String(), diff)
			}
		})
	}
}

func TestDispatchRunsActions(t *testing.T) {
	c := newCharm(t)
	c.script("dispatch", "echo $JUJU_DISPATCH_PATH", 0o755)
	s := c.spec("")
	s.Action = "backup"
	s.Env = Environment(Facts{Action: &ActionFacts{Name: "backup", ID: "4"}}, os.Getenv)
	if got := c.runner.Run(t.Context(), s); got != (Outcome{}) || cmp.Diff([]string{"actions/backup"}, c.got[Stdout]) != "" {
		t.Errorf("%+v, %q", got, c.got)
	}
}

func TestEnvironmentOfAnAction(t *testing.T) {
	env := Environment(Facts{Action: &ActionFacts{Name: "backup", ID: "4"}}, os.Getenv)
	var got []string
	for _, v := range env {
		if strings.HasPrefix(v, "JUJU_ACTION") || strings.HasPrefix(v, "JUJU_HOOK") || strings.HasPrefix(v, "JUJU_DISPATCH") {
			got = append(got, v)
		}
	}
	want := []string{"JUJU_HOOK_NAME=", "JUJU_ACTION_NAME=backup", "JUJU_ACTION_UUID=4", "JUJU_ACTION_TAG=action-4", "JUJU_DISPATCH_PATH=actions/backup"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
