package tools_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv"
	"bijou/hookenv/client/wire"
	"bijou/hookenv/hookapi"
	"bijou/hookenv/tools"
	"bijou/testscripts/conformance/hookapitest"
	"bijou/testscripts/conformance/recorded"
)

// failing is a hook in which all reads of settings fail.
type failing struct {
	hookapi.Hook
	err error
}

func (f failing) Settings(context.Context, hookapi.Node) (map[string]string, error) {
	return nil, fmt.Errorf("wrapped: %w", f.err)
}

func TestErrorsOfTheHook(t *testing.T) {
	facts := hookapi.Facts{Unit: "wordpress/0", Service: "wordpress", RemoteUnit: "mysql/0"}
	for _, tt := range []struct {
		err     error
		dialect hookapi.Dialect
		exit    int
		stderr  string
	}{
		{hookapi.ErrGone, hookapi.Modern, 1, "ERROR hook context gone\n"},
		{hookapi.ErrUnknownUnit, hookapi.Modern, 1, "ERROR unknown unit mysql/0\n"},
		{hookapi.ErrRelationNotFound, hookapi.Modern, 2, "ERROR relation not found\n"},
		{hookapi.ErrRelationNotFound, hookapi.Classic, 2, "ERROR Relation not found\n"},
		{context.DeadlineExceeded, hookapi.Classic, 1, "ERROR wrapped: context deadline exceeded\n"},
	} {
		facts.Dialect = tt.dialect
		h := failing{hookapitest.NewMemory(t, hookapitest.Standard()).Start(facts), tt.err}
		got := tools.Run(t.Context(), h, hookenv.Call{Argv: []string{"relation-get"}})
		if diff := cmp.Diff(hookenv.Result{Exit: tt.exit, Stderr: []byte(tt.stderr)}, got, equalBytes()); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.err, diff)
		}
	}
}

func TestCallsOfNoTool(t *testing.T) {
	for _, argv := range [][]string{nil, {""}, {"/bin/true"}} {
		if got := tools.Run(t.Context(), failing{Hook: hookapitest.NewMemory(t, hookapitest.Standard()).Start(hookapi.Facts{})}, hookenv.Call{Argv: argv}); got.Exit == 0 || len(got.Stderr) == 0 {
			t.Errorf("%q: got %+v", argv, got)
		}
	}
}

func TestLog(t *testing.T) {
	m := hookapitest.NewMemory(t, hookapitest.Standard())
	h := m.Start(hookapi.Facts{Unit: "wordpress/0", Service: "wordpress", Relation: hookapi.NoRelation})
	for _, argv := range [][]string{
		{"juju-log", "a", "b"},
		{"juju-log", "-l", "debug", "x"},
		{"juju-log", "--log-level=TRACE", "--", "-x"},
		{"juju-logger", "-lwarn", "y"},
		{"juju-log", "--debug", "z"},
		{"juju-log", "-l", "loud", "bytes \xff\x00é"},
	} {
		if got := tools.Run(t.Context(), h, hookenv.Call{Argv: argv}); got.Exit != 0 || len(got.Stderr) > 0 {
			t.Errorf("%q: got %+v", argv, got)
		}
	}
	want := []string{"INFO a b", "DEBUG x", "TRACE -x", "WARNING y", "DEBUG z", `WARNING unknown log level "loud": using INFO`, "INFO bytes \\xff\x00é"}
	if diff := cmp.Diff(want, m.Lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStdinBesideArguments checks that stdin is not read if there is a KEY=VALUE, and that the log says so.
// If stdin is empty or is read, the log has no such message.
func TestStdinBesideArguments(t *testing.T) {
	text := "k: v"
	for argv, unread := range map[string]bool{"a=1": true, "key": true, "a=1 -": false, "a=@-": false, "-": false, "": false} {
		t.Run(argv, func(t *testing.T) {
			for kind, stdin := range map[string]*string{wire.StdinFIFO: &text, wire.StdinNone: nil} {
				m := hookapitest.NewMemory(t, hookapitest.Standard())
				h := m.Start(hookapi.Facts{Unit: "wordpress/0", Service: "wordpress", Dialect: hookapi.Classic, Relation: hookapi.NoRelation})
				r := tools.Run(t.Context(), h, hookenv.Call{
					Argv: append([]string{"relation-set", "-r", "db"}, strings.Fields(argv)...), Stdin: kind, Files: here{stdin}, Now: fixedNow,
				})
				said := strings.Contains(strings.Join(m.Lines(), "\n"), "DEBUG relation-set: KEY=VALUE is given, so stdin is not read; add - ")
				if r.Exit != 0 || said != (unread && stdin != nil) {
					t.Errorf("relation-set %s, stdin %s: got %+v and %q", argv, kind, r, m.Lines())
				}
			}
		})
	}
}

// TestTouch checks that a KEY without a value is set to the time, so that the changed hooks of the other side
// run.
func TestTouch(t *testing.T) {
	s := plainSetup(t)
	s.Facts.Dialect = hookapi.Classic
	hook := openDirect(t, s)
	for _, argv := range [][]string{
		{"relation-set", "-r", "db", "dummy"},
		{"relation-set", "-r", "db", "dummy", "mysql/0"},
	} {
		if got := hook.Call(t, step(argv...)); got != (recorded.Outcome{}) {
			t.Errorf("%q: got %+v", argv, got)
		}
	}
	for _, unit := range []string{"wordpress/0", "mysql/0"} {
		got := hook.Call(t, step("relation-get", "-r", "db", "dummy", unit))
		if want := (recorded.Outcome{Stdout: "2012-02-29T21:49:14.000000005Z\n"}); got != want {
			t.Errorf("%s: got %+v, want %+v", unit, got, want)
		}
	}
}
