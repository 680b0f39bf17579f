package neco

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/updater/record"
)

// TestJoinFindings checks that findings that are the same on several servers share a line, with the earliest
// known time.
func TestJoinFindings(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	got := joinFindings([]record.Finding{
		{Server: 1, What: "no worker was ever seen"},
		{Server: 2, What: "no worker is alive"},
		{Server: 3, What: "no worker is alive", Since: at.Add(time.Hour)},
		{Server: 4, What: "no worker is alive", Since: at},
	})
	want := []string{
		"server 1: no worker was ever seen",
		"server 2, 3 and 4: no worker is alive; since 2026-01-02T03:04:05Z",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
