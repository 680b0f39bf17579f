package containers

import (
	"fmt"
	"testing"
	"time"
)

// TestDied checks that a killed container runs again soon after its agent's presence has ended.
func TestDied(t *testing.T) {
	w := newWorld(t, "died")
	w.sh("juju add-machine")
	w.eventually("juju machines", `(?m)^1 +running +\S+ +bj`)
	w.sh("kill -9 $(" + w.findInit("1") + ")")
	killed := time.Now()
	w.eventually("juju machines", `(?m)^1 +down`)
	down := time.Since(killed)
	w.eventually("juju machines", `(?m)^1 +running`)
	fmt.Printf("containers: died: seen after %v, back after %v\n", down.Round(time.Second), time.Since(killed).Round(time.Second))
	w.sh("juju destroy-environment -y died")
}
