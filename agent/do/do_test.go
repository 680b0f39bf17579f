package do

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "bijou/hookenv/client" // makes this binary a hook tool when it is called by a tool's name
	"bijou/hookenv/tools"
	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// pair adds mysql/0 and wordpress/0 in relation 0, and returns the options to run a command there. Through
// hookenv/client, this test binary also acts as every hook tool.
func pair(t *testing.T, st *state.State) Options {
	t.Helper()
	statetest.AddService(t, st, statetest.Meta("mysql", "provides:\n  server: mysql\n"), 1)
	statetest.AddService(t, st, statetest.Meta("wordpress", "requires:\n  db: mysql\n"), 1)
	id := statetest.Relate(t, st, "wordpress", "mysql").ID
	statetest.Update(t, st, func(tx *state.Tx) error {
		return errors.Join(tx.EnterRelation(id, "mysql/0", nil), tx.EnterRelation(id, "wordpress/0", nil))
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	var names []string
	for _, tool := range tools.All() {
		names = append(names, tool.Name)
	}
	return Options{
		State: st, Environ: append(os.Environ(), "GORACE=atexit_sleep_ms=0"), Links: Links{Names: names, Binary: self},
		Folder: func(string) (string, error) { return base, nil },
	}
}

// shell runs a shell script. It returns the script's output and its outcome.
func shell(t *testing.T, o Options, script string) (string, Outcome) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o.Command = []string{"sh", "-c", script}
	o.Streams = Streams{Out: out, Err: out}
	outcome, err := Run(t.Context(), o)
	if err != nil {
		fmt.Fprintf(out, "error: %v\n", err)
	}
	printed, err := os.ReadFile(out.Name())
	if err != nil {
		t.Error(err)
	}
	return string(printed), outcome
}

func TestRun(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		o := pair(t, st)
		for _, tt := range []struct {
			unit, relation, script string
			out                    string
			outcome                Outcome
		}{
			{"", "", "relation-set -r server a=1 mysql/0; relation-get -r server a mysql/0", "1\n", Outcome{Changed: 1}},
			{"", "", "relation-set -r server a=1 mysql/0", "", Outcome{}},
			{"", "", "relation-set -r server a=2 mysql/0; exit 3", "", Outcome{Exit: 3}},
			{"", "", "kill -TERM $$", "", Outcome{Exit: 143}},
			{"mysql/0", "", "open-port 80; relation-get -r server a", "1\n", Outcome{Changed: 1}},
			{"mysql/0", "", "close-port 80; open-port 80", "", Outcome{}},
			{"mysql/0", "0", `echo "$JUJU_RELATION $JUJU_RELATION_ID $JUJU_REMOTE_UNIT"`, "server relation-0 wordpress/0\n", Outcome{}},
			{"", "relation-0", `echo "${JUJU_RELATION-none} $JUJU_RELATION_ID ${JUJU_UNIT_NAME-none}"; relation-list`, "none relation-0 none\nmysql/0\nwordpress/0\n", Outcome{}},
			{"mysql/0", "7", "true", "error: relation-7 not found\n", Outcome{Exit: 1}},
			{"mysql/3", "", "true", "error: unit \"mysql/3\" not found\n", Outcome{Exit: 1}},
			{"", "", "juju-log hello", "INFO hello\n", Outcome{}},
		} {
			o.Unit, o.Relation = tt.unit, tt.relation
			out, outcome := shell(t, o, tt.script)
			if diff := cmp.Diff(tt.out, out) + cmp.Diff(tt.outcome, outcome); diff != "" {
				t.Errorf("as %q in %q, %s: (-want +got)\n%s", tt.unit, tt.relation, tt.script, diff)
			}
		}
		base, _ := o.Folder("")
		if left, err := os.ReadDir(base); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

// TestLeft checks that a command cannot run as a unit in a relation that the unit has left, and that other
// units can still write the unit's settings.
func TestLeft(t *testing.T) {
	st := statetest.New(t)
	o := pair(t, st)
	statetest.Update(t, st, func(tx *state.Tx) error { return tx.LeaveRelation(0, "mysql/0") })
	out, outcome := shell(t, o, "relation-set --relation-id 0 host=none mysql/0; relation-get -r 0 host mysql/0")
	if out != "none\n" || outcome.Changed != 1 {
		t.Errorf("got %q, %+v", out, outcome)
	}
	o.Unit, o.Relation = "mysql/0", "0"
	if out, outcome := shell(t, o, "true"); !strings.Contains(out, "is not in relation-0") || outcome.Exit != 1 {
		t.Errorf("got %q, %+v", out, outcome)
	}
}

// TestNested checks that the variables of an outer hook do not reach the command.
func TestNested(t *testing.T) {
	o := pair(t, statetest.New(t))
	o.Environ = append(o.Environ, "JUJU_REMOTE_UNIT=old/0", "JUJU_UNIT_NAME=old/1", "CHARM_DIR=/old", "JUJU_ENV=mine", "KEPT=yes")
	out, _ := shell(t, o, `echo "${JUJU_REMOTE_UNIT-} ${JUJU_UNIT_NAME-} ${CHARM_DIR-} $JUJU_ENV $KEPT"`)
	if want := "   mine yes\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// TestAtOnce checks that no key is lost if several commands write different keys of one settings node at the
// same time.
func TestAtOnce(t *testing.T) {
	statetest.Each(t, func(t *testing.T, st *state.State) {
		o := pair(t, st)
		var running sync.WaitGroup
		want := map[string]string{}
		for i := range 6 {
			want[fmt.Sprint("k", i)] = "v"
			running.Go(func() {
				if out, outcome := shell(t, o, fmt.Sprintf("relation-set -r server k%d=v mysql/0", i)); outcome != (Outcome{Changed: 1}) {
					t.Errorf("%d: %+v, %s", i, outcome, out)
				}
			})
		}
		running.Wait()
		got := statetest.Read(t, st, func(v *state.View) (state.Settings, error) { return v.Settings(0, "mysql/0") })
		if diff := cmp.Diff(want, got.Values); diff != "" {
			t.Error(diff)
		}
	})
}

// TestPlaces checks that a run removes the directory of a killed process, and keeps a directory that is in
// use.
func TestPlaces(t *testing.T) {
	base := t.TempDir()
	used, err := newWorkDir(base, Links{Names: []string{"a"}, Binary: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(base, "dead", "tools"), 0o700); err != nil {
		t.Fatal(err)
	}
	next, err := newWorkDir(base, Links{})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(base)
	if err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v, want the two that are used", entries, err)
	}
	if _, err := os.Stat(filepath.Join(used.toolsPath(), "a")); err != nil {
		t.Error(err)
	}
	used.remove()
	next.remove()
	if entries, _ := os.ReadDir(base); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}
