package released

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/testscripts/kit/need"
)

// TestOutsideDryRun runs the part of .ci/outside that does not need a separate machine. The first run must
// succeed. In the second run a charm is missing in the store, which must not prevent the rest.
func TestOutsideDryRun(t *testing.T) {
	need.Whole(t)
	for _, program := range []string{"python3", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			need.Skip(t, program, err)
		}
	}
	deb := newRelease(t).Debian(t)

	for _, test := range []struct {
		name   string
		plain  string
		failed []string
	}{
		{name: "all is well", plain: "mysql first"},
		{name: "a charm is missing", plain: "missing", failed: []string{"bijou: a charm", "upgrade"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := map[string]string{
				"package": "ok", "install": "ok", "uninstall": "ok", "upgrade": "ok",
				"bijou: bootstrap": "ok", "bijou: a charm": "ok", "bijou: a pair": "ok",
				"bijou: a charm with snaps": "skipped", "bijou: after a reboot": "ok", "bijou: destroy": "ok",
				"Juju 3.6: bootstrap": "skipped", "Juju 3.6: a charm": "skipped", "Juju 3.6: a pair": "skipped",
				"Juju 3.6: destroy": "skipped",
			}
			for _, step := range test.failed {
				want[step] = "failed"
			}

			report, err := dryRun(t, deb, test.plain)

			got := map[string]string{}
			for _, heading := range regexp.MustCompile(`(?m)^## (.*): (ok|failed|skipped), \d+ s$`).FindAllStringSubmatch(report, -1) {
				got[heading[1]] = heading[2]
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s\n%s", diff, report)
			}
			if (err != nil) != (len(test.failed) > 0) {
				t.Errorf("it ended with %v", err)
			}
			for _, line := range []string{"    asked/0 asks mysql/0 for asked\n", "    deployed asked from the store, "} {
				if !strings.Contains(report, line) {
					t.Errorf("the report does not have %q:\n%s", line, report)
				}
			}
		})
	}
}

// dryRun returns the report of a dry run.
func dryRun(t *testing.T, deb, plain string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	run := exec.Command("../../../.ci/outside", "--dry-run")
	run.Env = append(os.Environ(), "BIJOU_OUTSIDE_FOLDER="+dir, "BIJOU_OUTSIDE_PACKAGE="+deb, "BIJOU_OUTSIDE_FORMER="+deb,
		"BIJOU_OUTSIDE_PLAIN="+plain, "BIJOU_OUTSIDE_JUJU="+filepath.Join(dir, "none"))
	out, err := run.CombinedOutput()
	t.Logf("%s", out)

	report, readErr := os.ReadFile(filepath.Join(dir, "report.md"))
	check(t, readErr)
	return string(report), err
}
