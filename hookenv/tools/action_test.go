package tools_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
	"bijou/hookenv/tools"
	"bijou/testscripts/conformance/hookapitest"
)

// newAction returns a running action, and its world.
func newAction(t *testing.T) (hookapi.Hook, *hookapitest.Memory) {
	w := hookapitest.Standard()
	w.Action = &hookapi.Action{ID: "4", Name: "backup", Parameters: map[string]any{
		"file": "a.gz", "level": json.Number("3"), "quiet": false, "list": []any{"a", "b"},
		"mixed": []any{"a", json.Number("5242880")}, "size": json.Number("9223372036854775807"),
		"target": map[string]any{"host": "h", "port": json.Number("80")},
	}}
	w.Resources = map[string]string{"site": "/there/site.zip"}
	m := hookapitest.NewMemory(t, w)
	return m.Start(hookapi.Facts{Unit: "wordpress/0", Service: "wordpress", Relation: hookapi.NoRelation, Dialect: hookapi.Modern}), m
}

func TestActionTools(t *testing.T) {
	h, _ := newAction(t)
	for _, tc := range []struct {
		argv   []string
		exit   int
		stdout string
		stderr string
	}{
		{[]string{"action-get", "file"}, 0, "a.gz\n", ""},
		{[]string{"action-get", "level"}, 0, "3\n", ""},
		{[]string{"action-get", "quiet"}, 0, "False\n", ""},
		{[]string{"action-get", "list"}, 0, "a\nb\n", ""},
		{[]string{"action-get", "mixed"}, 0, "- a\n- 5242880\n", ""},
		{[]string{"action-get", "size"}, 0, "9223372036854775807\n", ""},
		{[]string{"action-get", "size", "--format=json"}, 0, "9223372036854775807\n", ""},
		{[]string{"action-get", "size", "--format=yaml"}, 0, "9223372036854775807\n", ""},
		{[]string{"action-get", "target.host"}, 0, "h\n", ""},
		{[]string{"action-get", "target"}, 0, "host: h\nport: 80\n", ""},
		{[]string{"action-get", "target.host.x"}, 0, "", ""},
		{[]string{"action-get", "none"}, 0, "", ""},
		{[]string{"action-get", "none", "--format=json"}, 0, "null\n", ""},
		{[]string{"action-get", "--format=json", "level"}, 0, "3\n", ""},
		{[]string{"action-get", "a", "b"}, 2, "", "ERROR unrecognized args: [\"b\"]\n"},
		{[]string{"action-set"}, 0, "", ""},
		{[]string{"action-set", "nope"}, 2, "", "ERROR argument \"nope\" must be of the form key...=value\n"},
		{[]string{"action-set", "Bad=1"}, 2, "", "ERROR invalid key \"Bad\": want lower-case letters and digits, and dashes only between them\n"},
		{[]string{"action-set", "a..b=1"}, 2, "", "ERROR invalid key \"\": want lower-case letters and digits, and dashes only between them\n"},
		{[]string{"action-set", "stdout=1"}, 2, "", "ERROR cannot set \"stdout\": the agent sets it\n"},
		{[]string{"action-set", "a=\xff"}, 1, "", "ERROR cannot set \"a\": settings can hold only UTF-8 text without NUL bytes; encode other data first, for example with base64\n"},
		{[]string{"action-fail", "a", "b"}, 2, "", "ERROR unrecognized args: [\"b\"]\n"},
		{[]string{"action-log"}, 2, "", "ERROR no message specified\n"},
		{[]string{"resource-get", "site"}, 0, "/there/site.zip", ""},
		{[]string{"resource-get", "none"}, 1, "", "ERROR unknown resource\n"},
		{[]string{"resource-get"}, 2, "", "ERROR missing required resource name\n"},
	} {
		got := tools.Run(t.Context(), h, hookenv.Call{Argv: tc.argv})
		want := hookenv.Result{Exit: tc.exit, Stdout: []byte(tc.stdout), Stderr: []byte(tc.stderr)}
		if diff := cmp.Diff(want, got, equalBytes()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tc.argv, diff)
		}
	}
}

func TestActionResults(t *testing.T) {
	h, m := newAction(t)
	for _, argv := range [][]string{
		{"action-set", "a=1", "b.c=2", "b.d=x=y"},
		{"action-set", "b.c.e=3", "f="},
		{"action-fail", "first"},
		{"action-fail"},
		{"action-log", "half", "of it"},
	} {
		if got := tools.Run(t.Context(), h, hookenv.Call{Argv: argv}); got.Exit != 0 {
			t.Errorf("%q: %+v", argv, got)
		}
	}
	results, failure := m.Results()
	want := map[string]any{"a": "1", "b": map[string]any{"c": map[string]any{"e": "3"}, "d": "x=y"}, "f": ""}
	if diff := cmp.Diff(want, results); diff != "" || failure != "the action has failed, and gave no reason" {
		t.Errorf("failure %q, results (-want +got):\n%s", failure, diff)
	}
	if got := fmt.Sprint(m.Lines()); got != "[ACTION half of it]" {
		t.Errorf("log: %s", got)
	}
}
