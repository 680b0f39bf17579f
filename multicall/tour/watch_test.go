package tour

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatus(t *testing.T) {
	const relation = `"relations":{"relation-1":{"services":{"a":{"state":"up"},"b":{"state":"up"}}}}`
	units := func(a, b string) string {
		return `{"services":{"a":{"units":{"a/0":` + a + `}},"b":{"units":{"b/0":` + b + `}}},` + relation + `}`
	}
	const active = `{"state":"started","workload-status":{"current":"active","message":"fine"}}`
	tests := []struct {
		name, json string
		settled    bool
		failed     string
	}{
		{"nothing", `{}`, false, ""},
		{"both active", units(active, active), true, ""},
		{"one waits", units(active, `{"state":"started","workload-status":{"current":"blocked"}}`), false, ""},
		{"one installs", units(active, `{"state":"pending"}`), false, ""},
		{"one failed", units(active, `{"state":"start-error","state-info":{"hook":"start","message":"exit code 1"}}`), false,
			`unit "b/0" is in state start-error: start: exit code 1`},
	}
	for _, tt := range tests {
		var s charmStatus
		if err := json.Unmarshal([]byte(tt.json), &s); err != nil {
			t.Fatal(err)
		}
		if s.isSettled() != tt.settled || s.failedUnit() != tt.failed {
			t.Errorf("%s: settled %t, failed %q", tt.name, s.isSettled(), s.failedUnit())
		}
	}
}

func TestWithout(t *testing.T) {
	got := withoutVars([]string{"HOME=/h", "JUJU_ENV=x", "BIJOU_HOME=y", "BIJOU_HOMEX=z"}, "JUJU_", "BIJOU_HOME=")
	if diff := cmp.Diff([]string{"HOME=/h", "BIJOU_HOMEX=z"}, got); diff != "" {
		t.Error(diff)
	}
}
