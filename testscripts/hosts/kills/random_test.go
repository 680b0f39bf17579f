package kills

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"bijou/state"
	"bijou/testscripts/kit/need"
)

// TestRandom kills the agents of twenty units at random moments while the units relate, change, upgrade
// and leave. A gateway is killed as often.
func TestRandom(t *testing.T) {
	need.Long(t)
	const units = 4
	const rounds = 5 // all units settle after each round
	for _, c := range []struct {
		over  string
		kills int
	}{
		{overSQLite, 200},
		{overGateway, 150},
	} {
		t.Run(c.over, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, c.over, units)
			for range rounds {
				halt := f.drive()
				for range c.kills / rounds {
					f.sleep(time.Second)
					f.strike()
				}
				halt()
				f.settle()
			}
			f.removeAll(f.services...)
			f.judge("random", "")
		})
	}
}

// strike kills the agents. If they have a gateway, it kills the agents, the gateway, or both. It starts again
// what it has killed.
func (f *fleet) strike() {
	f.t.Helper()
	if f.over != overGateway {
		f.kill()
		return
	}

	switch f.intn(3) {
	case 0:
		f.kill()
	case 1:
		f.killGateway(func() { f.sleep(time.Second) })
	case 2:
		pid := f.Agent()
		f.killGateway(func() {
			f.sleep(200 * time.Millisecond)
			check(f.t, kill9(pid))
		})
		f.bury(pid)
		f.start("")
	}
}

// fleet is a number of services whose units are all related to the first service.
type fleet struct {
	*world
	services []string

	mu   sync.Mutex
	dice *rand.Rand
}

func newFleet(t *testing.T, over string, units int) *fleet {
	f := &fleet{world: newWorld(t, over), services: []string{"hub", "east", "west", "north", "south"}, dice: dice(t)}
	for _, s := range f.services {
		f.Juju("deploy", f.charm, s, "-n", fmt.Sprint(units))
	}
	for _, s := range f.services[1:] {
		f.Juju("add-relation", s+":client", f.services[0]+":server")
	}
	return f
}

// dice returns random numbers from a seed. BIJOU_TEST_SEED sets the seed. The same seed and the same timing
// repeat a run.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("BIJOU_TEST_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	fmt.Printf("kills: %s: BIJOU_TEST_SEED=%d\n", t.Name(), seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func (f *fleet) intn(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dice.IntN(n)
}

// sleep lets the units work for a random time, up to the given maximum.
func (f *fleet) sleep(most time.Duration) {
	<-time.After(time.Duration(f.intn(int(most))))
}

// drive runs an operator's commands until halt is called.
func (f *fleet) drive() (halt func()) {
	stop := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(f.intn(int(time.Second)))):
				f.operate(n)
			}
		}
	})
	halt = sync.OnceFunc(func() { close(stop); working.Wait() })
	f.t.Cleanup(halt) // runs before the environment is destroyed, even if the test fails
	return halt
}

// operate runs one command. The command may be refused for a good reason, for example because a relation is
// still being removed.
func (f *fleet) operate(n int) {
	service := f.services[f.intn(len(f.services))]
	switch f.intn(7) {
	case 0:
		f.Try("add-relation", "south:server", "north:client")
	case 1:
		f.Try("destroy-relation", "south:server", "north:client")
	case 2:
		f.scale("west")
	case 3:
		if err := os.WriteFile(filepath.Join(f.charm, "turn"), []byte(fmt.Sprint(time.Now())), 0o644); err == nil {
			f.Try("upgrade-charm", service)
		}
	default:
		f.Try("set", service, fmt.Sprintf("set=turn=%d", n))
	}
}

// scale removes a unit of a service or adds one, so that their number stays about the same.
func (f *fleet) scale(service string) {
	s, err := state.Open(f.t.Context(), f.url())
	if err != nil {
		return
	}
	defer s.Close()
	var units []state.Unit
	err = s.View(f.t.Context(), func(v *state.View) (err error) {
		units, err = v.Units(service)
		return err
	})
	if n := len(units); err == nil && n > 2+f.intn(3) {
		f.Try("remove-unit", units[f.intn(n)].Name)
	} else if err == nil {
		f.Try("add-unit", service)
	}
}
