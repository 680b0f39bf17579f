package keys

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeys(t *testing.T) {
	got := []string{
		BootServer(1), Release, Current, Worker(10), Contents("sabakan"), Config("env"), UpdaterLeader,
		WorkerLeader("cke-contents"), Turn("etcd"), History(7), Alert("7-1-stopped"), Presence(3), Format,
	}
	for i := range got {
		got[i] = DefaultPrefix + got[i]
	}
	want := []string{
		"/neco/info/bootservers/1", "/neco/info/release", "/neco/status/current", "/neco/status/bootserver/10", "/neco/contents/sabakan", "/neco/config/env", "/neco/leader/updater/current",
		"/neco/leader/worker/cke-contents", "/neco/leader/turn/etcd", "/neco/history/0000000007", "/neco/outbox/7-1-stopped", "/neco/presence/3", "/neco/format",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
