package childenv

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNew checks which child processes get each variable.
func TestNew(t *testing.T) {
	all := []Child{Machine, Background, Provider, Program, Tour}
	for _, test := range []struct {
		variable string
		want     []Child
	}{
		{"PATH", all},
		{"HOME", all},
		{"XDG_RUNTIME_DIR", all},
		{"SSH_AUTH_SOCK", all},
		{"https_proxy", all},
		{"NO_COLOR", all},
		{"TMPDIR", all},
		{"AWS_PROFILE", all},
		{"BIJOU_METRICSX", all},

		{"BIJOU_METRICS", []Child{Background}},
		{"BIJOU_FAULT", []Child{Background}},
		{"BIJOU_DEBUG", []Child{Machine, Background, Provider, Tour}},
		{"BIJOU_PLUGIN_PATH", []Child{Machine, Background, Provider, Tour}},
		{"BIJOU_HOME", []Child{Machine, Background, Provider}},
		{"BIJOU_PROVIDER", nil},
		{"BIJOU_STATE", nil},
		{"NECO_STATE", []Child{Program}},

		{"JUJU_ENV", nil},
		{"JUJU_STATE", nil},
		{"JUJU_REPOSITORY", nil},
		{"JUJU_VERSION", nil},
		{"JUJU_CLIENT_ID", nil},
		{"JUJU_SOCKET", nil},
		{"JUJU_ENV_UUID", nil},
		{"JUJU_UNIT_DIR", nil},
		{"CHARM_DIR", nil},

		{"NOTIFY_SOCKET", nil},
		{"WATCHDOG_USEC", nil},
		{"WATCHDOG_PID", nil},
		{"MAINPID", nil},
		{"MANAGERPID", nil},
		{"SYSTEMD_EXEC_PID", nil},
		{"LISTEN_FDS", nil},
		{"LISTEN_PID", nil},
		{"LISTEN_FDNAMES", nil},
		{"FDSTORE", nil},
		{"INVOCATION_ID", nil},
		{"JOURNAL_STREAM", nil},
		{"CREDENTIALS_DIRECTORY", nil},
		{"MEMORY_PRESSURE_WATCH", nil},
		{"RUNTIME_DIRECTORY", nil},
	} {
		t.Run(test.variable, func(t *testing.T) {
			var got []Child
			for _, child := range all {
				if len(New([]string{test.variable + "=a=b"}, child)) > 0 {
					got = append(got, child)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNewKeepsTheRest checks that the variables that a child gets keep their order, and that the
// caller's environment does not change.
func TestNewKeepsTheRest(t *testing.T) {
	environ := strings.Fields("B=1 BIJOU_METRICS=:1 A= NOTIFY_SOCKET=/run/s C=x=y")
	before := slices.Clone(environ)

	if diff := cmp.Diff(strings.Fields("B=1 A= C=x=y"), New(environ, Machine)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, environ); diff != "" {
		t.Error(diff)
	}
}

// TestSettings checks the function with which a law in testscripts checks each variable that the
// program reads.
func TestSettings(t *testing.T) {
	for _, name := range []string{"BIJOU_METRICS", "NECO_STATE", "JUJU_ENV"} {
		if !IsKnown(name) {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"BIJOU_NEW", "NECO_NEW"} {
		if IsKnown(name) {
			t.Errorf("%s is known", name)
		}
	}
}
