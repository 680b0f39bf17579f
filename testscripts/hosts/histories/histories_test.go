package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"bijou/multicall"
	"bijou/state/keyspace"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/applets"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// TestMain lets this binary act also as a worker.
func TestMain(m *testing.M) {
	applets.MainWith(m, multicall.Options{}, map[string]func(){program: Main}, func() {
		if !need.LongRun() {
			fmt.Println("skip: histories of killed processes take minutes; BIJOU_TEST_LONG=1 plays them")
		}
	})
}

const (
	processes = 4
	played    = 15 * time.Second
	// checked limits the checker's time for one history. The checker needs far less than a second, unless
	// very many operations have no outcome.
	checked = 2 * time.Minute
)

// firstSeed returns the seed of BIJOU_TEST_SEED, or a random one.
func firstSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("BIJOU_TEST_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = given
	}
	t.Logf("BIJOU_TEST_SEED=%d chooses the same operations again, at other moments", seed)
	return seed
}

// TestSQLite plays histories over a file. One of the processes is killed about every second.
func TestSQLite(t *testing.T) {
	need.Long(t)
	seed := firstSeed(t)
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			p := &play{url: sqliteURL(t)}
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			p.run(t, random, played, func() {})
			p.check(t, true)
		})
	}
}

// TestEtcd plays histories over three members, which are killed too. The workers must not notice the death of
// one member. The death of two at a time makes the store unavailable.
func TestEtcd(t *testing.T) {
	need.Long(t)
	seed := firstSeed(t)
	c := etcdtest.For(t, etcdtest.Options{Members: 3})
	for i := range 8 {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			p := &play{url: c.URL(fmt.Sprintf("/histories-%d", i))}
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			p.run(t, random, played, func() {
				if random.IntN(3) == 0 {
					killMembers(t, c, random, 1+random.IntN(2))
				}
			})
			p.check(t, true)
		})
	}
}

// TestPlanted gives workers one fault each, which the checker must find.
func TestPlanted(t *testing.T) {
	need.Long(t)
	seed := firstSeed(t)
	for _, plant := range []string{tornView, blindMove, emptyReply, stolenSlot, freedSlot} {
		t.Run(plant, func(t *testing.T) {
			p := &play{url: sqliteURL(t), plant: plant}
			p.run(t, rand.New(rand.NewPCG(seed, 0)), 4*time.Second, nil)
			p.check(t, false)
		})
	}
}

func sqliteURL(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "state.db") }

// killMembers kills n members of etcd and starts them again.
func killMembers(t *testing.T, c *etcdtest.Cluster, random *rand.Rand, n int) {
	t.Helper()
	chosen := random.Perm(len(c.Members))[:n]
	for _, i := range chosen {
		if err := c.Members[i].Kill(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
	for _, i := range chosen {
		if err := c.Members[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
}

// run lets the workers play for the given duration. About every second it kills one of them and calls strike,
// and at the end it waits until all have ended. If strike is nil, it kills nothing.
func (p *play) run(t *testing.T, random *rand.Rand, length time.Duration, strike func()) {
	t.Helper()
	ends := time.Now().Add(length)
	space, err := keyspace.Create(t.Context(), p.url, "/histories/")
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()

	workers := make([]*exec.Cmd, processes)
	done := make([]<-chan struct{}, processes)
	begin := func(i int) {
		workers[i], done[i], err = p.start(random.Uint64(), time.Until(ends))
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range workers {
		begin(i)
	}
	kills := 0
	for strike != nil && time.Until(ends) > 2*time.Second {
		time.Sleep(500*time.Millisecond + time.Duration(random.IntN(1000))*time.Millisecond)
		i := random.IntN(processes)
		_ = workers[i].Process.Kill()
		<-done[i]
		kills++
		strike()
		begin(i)
	}
	for _, ended := range done {
		<-ended
	}

	awaitFreeSlots(t, space)
	t.Logf("histories: %d operations of %d processes, %d kills", len(p.history), p.workers, kills)
	for _, said := range p.complain {
		t.Errorf("a worker failed: %s", said)
	}
}

// awaitFreeSlots waits until the sessions of killed workers have ended.
func awaitFreeSlots(t *testing.T, space *keyspace.Space) {
	t.Helper()
	var held world
	await.Until(t, await.Poll{Limit: 6 * keyspace.SessionTTL, Pause: 100 * time.Millisecond}, "no slot is held", func() string {
		err := space.View(context.Background(), func(v *keyspace.View) error {
			for i := range slots {
				if err := readSlot(v, i, &held); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err.Error()
		}
		if held != (world{}) {
			return fmt.Sprintf("sessions that have ended hold slots: %v", held.Holders)
		}
		return ""
	})
}

// check ends the history, and checks that it is linearizable, or that it is not.
func (p *play) check(t *testing.T, want bool) {
	t.Helper()
	history := p.finish(now())
	if len(history) < 100 {
		t.Fatalf("a history of %d operations shows nothing", len(history))
	}

	result, info := porcupine.CheckOperationsVerbose(model(), history, checked)
	switch {
	case result == porcupine.Unknown:
		t.Errorf("the checker did not come to an end in %s", checked)
	case want && result == porcupine.Illegal:
		picture := filepath.Join(os.TempDir(), fmt.Sprintf("history-%d.html", os.Getpid()))
		err := porcupine.VisualizePath(model(), info, picture)
		t.Errorf("this history has no order of its operations; see %s (%v)", picture, err)
	case !want && result == porcupine.Ok:
		t.Errorf("the checker has not found the fault %q", p.plant)
	}
}
