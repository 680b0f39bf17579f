package accessed

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestUnusedRights compares the rights that no script has used with a list of reasons. It needs the
// file that all scripts have added to: run .ci/long access.
func TestUnusedRights(t *testing.T) {
	file := os.Getenv(UsedVariable)
	if file == "" {
		t.Skipf("skipped: %s names no file with the rights that scripts have used", UsedVariable)
	}
	unused, err := Unused(file)
	if err != nil {
		t.Fatal(err)
	}
	known := unusedRights()
	for _, right := range unused {
		if known[right] == "" {
			t.Errorf("%s: no script needs it: take it out of the table, or say here why it stays", right)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(known)) {
		if !slices.Contains(unused, right) {
			t.Errorf("%s: scripts need it, which this list does not know", right)
		}
	}
	t.Logf("no script needs:\n  %s", strings.Join(unused, "\n  "))
}

// unusedRights are the rights that scripts do not use, each with the reason why it stays.
func unusedRights() map[string]string {
	opens := "a process opens the environment with it, which the store that asks is put over later"
	outages := "a machine logs what its agent cannot do, as when a store is away: testscripts/hosts/outage"

	return map[string]string{
		"get format":    opens,
		"get migration": opens,

		"get logs/machine-{machine}":         outages,
		"put logs/machine-{machine}":         outages,
		"get log/machine-{machine}/{seq}":    outages,
		"put log/machine-{machine}/{seq}":    outages,
		"delete log/machine-{machine}/{seq}": outages,
		"delete log/{unit}/{seq}":            "a log loses its oldest batch after half a megabyte: TestSoak",
		"delete actions/{n}":                 "the fifty-first action has the oldest forgotten: TestOldActionsAreForgotten",
	}
}
