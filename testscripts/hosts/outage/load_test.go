package outage

import (
	"fmt"
	"sync"
	"time"
)

// load keeps an environment busy. It changes configurations, which makes units write into their
// relations, and adds and removes relations and units.
type load struct {
	w        *world
	services []string

	stop    chan struct{}
	end     func() // stops the load and waits for its end; later calls do nothing
	running sync.WaitGroup

	mu      sync.Mutex
	answers []answer
}

// deployFleet deploys services with a few units each, all related to the first service.
func (w *world) deployFleet(services []string, units int) {
	w.t.Helper()
	for _, s := range services {
		w.Juju("deploy", w.charm, s, "-n", fmt.Sprint(units))
	}
	for _, s := range services[1:] {
		w.Juju("add-relation", s+":client", services[0]+":server")
	}
}

// newLoad returns an idle load. It ends before the test does, even if the test fails.
func newLoad(w *world, services []string) *load {
	l := &load{w: w, services: services, stop: make(chan struct{})}
	l.end = sync.OnceFunc(func() {
		close(l.stop)
		l.running.Wait()
	})
	w.t.Cleanup(l.end)
	return l
}

// drive starts the load. halt ends it.
func (w *world) drive(services []string) *load {
	l := newLoad(w, services)
	l.running.Go(func() { l.repeat(700*time.Millisecond, l.change) })
	l.running.Go(func() { l.repeat(4*time.Second, l.relate) })
	l.running.Go(func() { l.repeat(9*time.Second, l.scale) })
	return l
}

// halt ends the load and returns the results of its commands.
func (l *load) halt() []answer {
	l.end()
	return l.answers
}

func (l *load) repeat(every time.Duration, do func(n int)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			do(n)
		}
	}
}

func (l *load) ask(args ...string) {
	a := l.w.ask(args...)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, a)
}

// change makes all units of one service write.
func (l *load) change(n int) {
	l.ask("set", l.services[n%len(l.services)], fmt.Sprintf("set=turn=%d", n))
}

// relate adds the relation between the last two services, or removes it.
func (l *load) relate(n int) {
	command := []string{"add-relation", "destroy-relation"}[n%2]
	last := len(l.services) - 1
	l.ask(command, l.services[last]+":client", l.services[last-1]+":server")
}

// scale adds a unit to the second service or removes the previous one.
func (l *load) scale(n int) {
	service := l.services[1]
	if n%2 == 0 {
		l.ask("add-unit", service)
		return
	}
	if units, err := l.w.unitsOf(service); err == nil && len(units) > 0 {
		l.ask("remove-unit", units[len(units)-1])
	}
}
