package outage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// TestRestored restores etcd from older data at the same addresses while an agent waits. The agent must
// report that once. Services that were deployed after the backup must be gone. New requests must be carried
// out without a restart.
func TestRestored(t *testing.T) {
	need.Long(t)
	for _, members := range []int{1, 3} {
		t.Run(fmt.Sprintf("members=%d", members), func(t *testing.T) {
			c := etcdtest.For(t, etcdtest.Options{Members: members})
			w := newWorld(t, c.URL("/restored"))
			w.Juju("deploy", w.charm, "kept")
			w.awaitStarted("kept/0")
			check(t, c.Save())
			w.Juju("deploy", w.charm, "lost")
			w.awaitStarted("lost/0")
			pid, mark := w.Agent(), w.mark()
			check(t, c.Restore())
			began := time.Now()
			w.Juju("add-unit", "kept")
			w.awaitStarted("kept/1")
			fmt.Printf("outage: restored: %d members, a unit that was added then had started %v later\n", members, time.Since(began).Round(time.Millisecond))
			if status := w.Juju("status", "--wide"); strings.Contains(status, "lost") {
				t.Errorf("what was deployed since is still there:\n%s", status)
			}
			if said := strings.Count(w.log(mark), "reading everything again"); said != 1 {
				t.Errorf("it was said %d times:\n%s", said, w.log(mark))
			}
			if now := w.Agent(); now != pid {
				t.Errorf("the agent is process %d, and was %d", now, pid)
			}
		})
	}
}

// awaitStarted waits until the unit has run its start hooks.
func (w *world) awaitStarted(unit string) {
	w.t.Helper()
	w.eventually(unit+" starts", time.Minute, func() string {
		status := w.Juju("status", "--wide", unit)
		if strings.Contains(status, "started") {
			return ""
		}
		return status
	})
}
