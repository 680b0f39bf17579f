package tools_test

import (
	"testing"

	"bijou/hookenv/hookapi"
	"bijou/testscripts/conformance/recorded"
)

// TestOperator checks that an operator can write for any unit in either dialect. If there is no default unit,
// the error tells the operator to name one.
func TestOperator(t *testing.T) {
	const nameOne = "ERROR no unit specified: name the unit as the last argument, or run juju do with --unit\n"
	for _, tt := range []struct {
		unit string
		argv []string
		want recorded.Outcome
	}{
		{"wordpress/0", []string{"relation-set", "-r", "db", "user=x", "mysql/0"}, recorded.Outcome{}},
		{"wordpress/0", []string{"relation-set", "-r", "db", "--app", "k=v", "mysql/0"}, recorded.Outcome{}},
		{"wordpress/0", []string{"open-port", "80", "mysql/0"}, recorded.Outcome{}},
		{"", []string{"relation-set", "-r", "server", "user=x", "mysql/0"}, recorded.Outcome{}},
		{"", []string{"relation-set", "-r", "3", "user=x"}, recorded.Outcome{Exit: 2, Stderr: nameOne}},
		{"", []string{"relation-get", "-r", "3", "user"}, recorded.Outcome{Exit: 2, Stderr: nameOne}},
		{"", []string{"open-port", "80"}, recorded.Outcome{Exit: 2, Stderr: nameOne}},
		{"", []string{"relation-list", "--type=relation-id"}, recorded.Outcome{Exit: 2, Stderr: nameOne}},
		{"", []string{"relation-list", "-r", "3"}, recorded.Outcome{Stdout: "backup/0\nmysql/0\n"}},
		{"", []string{"config-get", "title"}, recorded.Outcome{Exit: 2, Stderr: "ERROR no unit specified: run juju do with --unit\n"}},
	} {
		for _, dialect := range []hookapi.Dialect{hookapi.Classic, hookapi.Modern} {
			s := plainSetup(t)
			s.Facts = hookapi.Facts{Operator: true, Dialect: dialect, Relation: hookapi.NoRelation}
			if tt.unit != "" {
				s.Facts.Unit, s.Facts.Service = tt.unit, "wordpress"
			}
			if got := openDirect(t, s).Call(t, step(tt.argv...)); got != tt.want {
				t.Errorf("%s as %q, %q: got %+v, want %+v", dialect, tt.unit, tt.argv, got, tt.want)
			}
		}
	}
}
