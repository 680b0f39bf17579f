package versions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/testscripts/kit/need"
)

// otherAnswers is the last binary that does not know the setting resolved-skips and does not keep charms.
const otherAnswers = "3441857ea1bf9ab71483e374525926277c2fc56f"

// TestAnswers checks how this binary resolves a failed hook. If the former binary has bootstrapped the
// environment, the hook counts as done, as before. If this binary has, the hook runs again. Then both
// binaries upgrade the service. The former binary must not remove the charms that this one has kept.
func TestAnswers(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	Need(t)
	former, current := At(t, otherAnswers), Current(t)
	for _, c := range []struct{ name, binary, said string }{
		{"made by the former one", former, "start of near/0 counts as done, since resolved-skips is true in this model"},
		{"made by this one", current, "start of near/0 runs again; --no-retry counts it as done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.binary, "", "--config", "automatically-retry-hooks=false")
			w.current = current
			w.juju(c.binary, "deploy", w.charm, "near", "--config", "fail=start")
			w.eventually("the hook has failed", func() string {
				out, _ := w.command(current, "show-unit", "near/0", "--format", "yaml").CombinedOutput()
				if !strings.Contains(string(out), "start-error") {
					return string(out)
				}
				return ""
			})

			w.juju(former, "set", "near", "fail=")
			out, err := w.command(current, "resolved", "near/0").CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.said) {
				t.Errorf("%v: %s; want %q", err, out, c.said)
			}
			w.juju(current, "wait", "--timeout", "2m")

			for _, step := range []struct{ binary, revision string }{{current, "12"}, {former, "13"}} {
				check(t, os.WriteFile(filepath.Join(w.charm, "revision"), []byte(step.revision), 0o644))
				w.juju(step.binary, "upgrade-charm", "near")
				w.juju(current, "wait", "--timeout", "2m")
			}

			w.juju(former, "expose", "near")
			out, err = w.command(current, "rollback", "near").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "recorder-13 to local:") || !strings.Contains(string(out), "recorder-1\n") {
				t.Errorf("%v: %s", err, out)
			}
			w.juju(current, "wait", "--timeout", "2m")
		})
	}
}
