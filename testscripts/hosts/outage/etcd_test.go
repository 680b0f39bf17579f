package outage

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// away is the time for which the whole store is away.
const away = 2 * time.Minute

// mostAttempts limits the number of retries of a unit's agent during that time. The first retries follow
// soon, and later ones every half minute.
const mostAttempts = 15

// TestEtcd runs a fleet of twenty units over three members. The members are killed one after the other, then
// compacted and defragmented, and then all away for two minutes.
func TestEtcd(t *testing.T) {
	need.Long(t)
	c := etcdtest.For(t, etcdtest.Options{Members: 3})
	w := newWorld(t, c.URL("/outage"))
	services := []string{"hub", "east", "west", "north", "south"}
	w.deployFleet(services, 4)
	for _, s := range []struct {
		name   string
		strike func(*world, *etcdtest.Cluster) string
	}{
		{"each member killed", (*world).killEach},
		{"compacted and defragmented", (*world).maintain},
		{"all members away", (*world).loseAll},
	} {
		mark := w.mark()
		l := w.drive(services)
		counted := s.strike(w, c)
		for _, a := range refusals(l.halt()) {
			w.checkRefusal(a, patient)
		}
		w.settle(s.name)
		w.judge(s.name, counted)
		w.tellTrouble(mark)
	}
}

// killEach kills one member after the other.
func (w *world) killEach(c *etcdtest.Cluster) string {
	rest(15 * time.Second)
	for _, m := range c.Members {
		check(w.t, m.Kill())
		rest(6 * time.Second)
		check(w.t, m.Start())
		rest(4 * time.Second)
	}
	return fmt.Sprintf("%d kills", len(c.Members))
}

// maintain compacts the history again and again, and defragments each member.
func (w *world) maintain(c *etcdtest.Cluster) string {
	compactions, defragmentations := 0, 0
	for range 3 {
		for _, m := range c.Members {
			for range 8 { // often, because it is random whether a compaction comes between two reads
				rest(120 * time.Millisecond)
				_, err := m.Compact()
				check(w.t, err)
				compactions++
			}
			check(w.t, m.Defragment())
			defragmentations++
		}
	}
	return fmt.Sprintf("%d compactions, %d defragmentations", compactions, defragmentations)
}

// loseAll kills all members at once, and starts them two minutes later.
func (w *world) loseAll(c *etcdtest.Cluster) string {
	rest(5 * time.Second)
	mark := w.mark()
	for _, m := range c.Members {
		check(w.t, m.Kill())
	}
	began, spent := time.Now(), cpuTime(w.t, w.Agent())
	rest(10 * time.Second) // until all agents have noticed
	refused := w.askAround()
	rest(time.Until(began.Add(away)))
	spent = cpuTime(w.t, w.Agent()) - spent
	said, attempts := w.log(mark), strings.Count(w.fullLog(mark), `msg="a step did not succeed"`)
	w.startAll(c)
	for _, line := range []string{`msg=continuing `, `msg="provisioner leads"`} {
		w.eventually("all go on", 2*time.Minute, func() string { return lacks(w.log(mark), line) })
	}
	w.checkSaid(said, w.log(mark))
	if most := away / 20; spent > most {
		w.t.Errorf("the agents used %v of CPU while the store was away, want at most %v", spent, most)
	}
	if most := 20 * mostAttempts; attempts > most {
		w.t.Errorf("the agents tried %d times while the store was away, want at most %d", attempts, most)
	}
	return fmt.Sprintf("%v away, %d commands refused, %d attempts of the agents with %v of CPU meanwhile", away, refused, attempts, spent)
}

// startAll starts all members at once, because none is ready without the others.
func (w *world) startAll(c *etcdtest.Cluster) {
	w.t.Helper()
	var starting sync.WaitGroup
	for _, m := range c.Members {
		starting.Go(func() {
			if err := m.Start(); err != nil {
				w.t.Error(err)
			}
		})
	}
	starting.Wait()
}

// askAround runs commands of several kinds. All of them must fail.
func (w *world) askAround() int {
	w.t.Helper()
	commands := [][]string{
		{"status"}, {"set", "east", "set=turn=x"}, {"add-unit", "west"}, {"deploy", w.charm, "late"},
		{"get", "hub"}, {"debug-log", "-n", "1"}, {"resolved", "hub/0"}, {"destroy-relation", "hub", "east"},
	}
	for _, args := range commands {
		a := w.ask(args...)
		if a.code == 0 {
			w.t.Errorf("it cannot have succeeded: %s", a)
			continue
		}
		w.checkRefusal(a, soon)
	}
	return len(commands)
}

// checkSaid checks that the log has one line about the beginning of the outage and one about its end.
func (w *world) checkSaid(meanwhile, all string) {
	w.t.Helper()
	for line, want := range map[string][2]int{
		`msg="cannot continue;`: {1, 1}, `msg=continuing `: {0, 1}, `msg="the session was lost;`: {0, 1},
		`msg="provisioner leads"`: {0, 1},
	} {
		got := [2]int{strings.Count(meanwhile, line), strings.Count(all, line)}
		if got != want {
			w.t.Errorf("%s was said %d times while the store was away and %d times in all, want %v", line, got[0], got[1], want)
		}
	}
	if n := strings.Count(all, `msg="restarting the provisioner"`); n > 2 { // once with the reason why it ended, and once with the reason why it waits
		w.t.Errorf("the provisioner was restarted %d times, want at most 2", n)
	}
}
