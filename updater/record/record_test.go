package record

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/updater/keys"
)

// TestServerOfKey checks that a key of server 1 is not mistaken for a key of server 10. The original neco
// confused them.
func TestServerOfKey(t *testing.T) {
	tests := []struct {
		key string
		lrn int
		ok  bool
	}{
		{keys.Worker(1), 1, true}, {keys.Worker(10), 10, true}, {keys.Worker(0), 0, true},
		{keys.Workers, 0, false}, {keys.Workers + "1/x", 0, false}, {keys.Workers + "01", 0, false}, {keys.Workers + "+1", 0, false},
		{keys.Workers + "-1", 0, false}, {keys.Workers + "1000000", 0, false}, {keys.BootServer(1), 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.key, func(t *testing.T) {
			if lrn, ok := ParseServerKey(keys.Workers, tt.key); ok != tt.ok || ok && lrn != tt.lrn {
				t.Errorf("%q: %d, %t", tt.key, lrn, ok)
			}
		})
	}
}

// TestServersAreNumbers checks that servers are sorted as numbers. The original neco sorted ten servers as
// strings.
func TestServersAreNumbers(t *testing.T) {
	got := SortServers([]int{10, 2, 1, 2, 9})
	if diff := cmp.Diff([]int{1, 2, 9, 10}, got); diff != "" {
		t.Error(diff)
	}
	for want, list := range map[string][]int{"": nil, "3": {3}, "2 and 10": {10, 2}, "1, 2 and 10": {10, 2, 1}} {
		t.Run(want, func(t *testing.T) {
			if got := ListServers(list); got != want {
				t.Errorf("%v: %q, want %q", list, got, want)
			}
		})
	}
}

// TestRecordsAreTheSeeds checks the names of the fields that other programs read.
func TestRecordsAreTheSeeds(t *testing.T) {
	at := time.Date(2018, 11, 7, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		record any
		want   string
	}{
		{Request{Version: "1.2.3-1", Servers: []int{1, 2, 3}, ID: 4, Attempt: 1, StartedAt: at, AttemptAt: at},
			`{"version":"1.2.3-1","servers":[1,2,3],"stop":false,"id":4,"attempt":1,"started-at":"2018-11-07T00:00:00Z","progress-at":"2018-11-07T00:00:00Z"}`},
		{Status{Version: "1.2.3-1", Step: 2, Request: 4, Attempt: 1, StepName: "cke/update", At: at},
			`{"version":"1.2.3-1","step":2,"finished":false,"error":false,"message":"","request":4,"attempt":1,"step-name":"cke/update","at":"2018-11-07T00:00:00Z"}`},
		{Contents{Version: "1.2.3-1", Success: true}, `{"version":"1.2.3-1","success":true}`},
	}
	for _, tt := range tests {
		got, err := json.Marshal(tt.record)
		if diff := cmp.Diff(tt.want, string(got)); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
	// A record from another program may lack fields, and may have unknown fields.
	var r Request
	if err := json.Unmarshal([]byte(`{"version":"1.2.3-1","servers":[1,2,3],"stop":true,"later":1}`), &r); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Request{Version: "1.2.3-1", Servers: []int{1, 2, 3}, Stop: true}, r); diff != "" {
		t.Error(diff)
	}
}
