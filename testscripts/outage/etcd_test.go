package outage

import (
	"fmt"
	"testing"
	"time"

	"bijou/testscripts/etcdtest"
)

// TestMembers kills each of three members in turn under a fleet at work.
func TestMembers(t *testing.T) {
	needLong(t)
	c := etcdtest.For(t, etcdtest.Options{Members: 3})
	w := newWorld(t, c.URL("/outage"))
	services := []string{"hub", "east", "west", "north", "south"}
	w.deployFleet(services, 4)
	l := w.drive(services)
	rest(20 * time.Second)
	for _, m := range c.Members {
		check(t, m.Kill())
		rest(6 * time.Second)
		check(t, m.Start())
		rest(4 * time.Second)
	}
	refused := refusals(l.halt())
	for _, a := range refused {
		t.Log(a)
	}
	w.settle("the members' kills")
	w.judge("members", fmt.Sprintf("3 kills, %d commands refused", len(refused)))
}

func refusals(all []answer) (refused []answer) {
	for _, a := range all {
		if a.code != 0 {
			refused = append(refused, a)
		}
	}
	return refused
}
