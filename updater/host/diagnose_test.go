package host_test

import (
	"strings"
	"testing"

	"bijou/updater/record"
	"bijou/updater/release"
)

// TestLook checks that the diagnosis reports ill components, checks disks and clock, and changes nothing.
func TestLook(t *testing.T) {
	u := &units{runs: map[string]bool{"vault.service": true}}
	h, _ := newHost(t, u)
	all := h.Diagnose(t.Context(), release.Manifest{Components: []release.Component{
		{Name: "cke", Services: []string{"cke.service"}},
		{Name: "vault", Services: []string{"vault.service"}},
		{Name: "sick", Health: &release.Health{Command: []string{"sh", "-c", "echo no space; exit 1"}}},
		{Name: "contents", Contents: &release.Contents{Key: "x"}},
	}})
	want := []record.Diagnosis{{What: "cke", How: "cke.service does not run", Bad: true}, {What: "vault", How: "well"}}
	for i, f := range want {
		if all[i] != f {
			t.Errorf("%+v, want %+v", all[i], f)
		}
	}
	if f := all[2]; f.What != "sick" || !f.Bad || !strings.Contains(f.How, "no space") {
		t.Errorf("%+v", f)
	}
	if len(all) != 6 || !strings.HasPrefix(all[3].What, "disk of /") || !strings.Contains(all[4].How, " MiB free, ") || all[5].What != "clock" {
		t.Errorf("%+v", all[3:])
	}
	if did := u.asked(); did != nil {
		t.Errorf("it did %v", did)
	}
}
