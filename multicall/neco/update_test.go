package neco

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/multicall/console"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// TestUpdateToInstalled checks that a request for the installed version replaces a pending request for a
// different one, and that it otherwise changes nothing.
func TestUpdateToInstalled(t *testing.T) {
	ended := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	installed := record.Target{Version: "2.0"}
	for what, tt := range map[string]struct {
		pending *record.Target
		want    []updater.Change
		says    string
	}{
		"nothing is requested": {nil, nil, "there is nothing to do: the last update went to 2.0"},
		"it is requested already": {
			&record.Target{Version: "2.00", Passed: "2.0"}, nil, "there is nothing to do: the last update went to 2.0",
		},
		"a downgrade is requested": {
			&record.Target{Version: "1.0", Downgrade: true, Passed: "2.0"},
			updater.Replace(keys.Target, record.Target{Version: "2.0", Passed: "2.0"}),
			"the servers stay at 2.0: the requested update to 1.0 no longer begins",
		},
	} {
		t.Run(what, func(t *testing.T) {
			var said bytes.Buffer
			o := &operator{streams: console.Streams{Out: &said, Err: &said}}
			s := decide.Snapshot{
				Servers: []int{1},
				Release: "2.0",
				Config:  record.Config{Env: record.EnvProduction},
				Current: &record.Request{Version: "2.0", Servers: []int{1}, ID: 7, Attempt: 1, EndedAt: &ended},
				Target:  tt.pending,
				Pause:   &record.Pause{},
			}
			got, err := updateCmd{To: "2.0"}.requestUpdate(o, s, installed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if got := strings.TrimSpace(said.String()); got != tt.says {
				t.Errorf("it says %q, want %q", got, tt.says)
			}
		})
	}
}
