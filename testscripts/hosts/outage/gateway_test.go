package outage

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/confined"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/need"
)

// gatewayAway is the time for which a gateway is away. It is several times as long as a session lasts without
// the gateway.
const gatewayAway = 40 * time.Second

// gatewayFault is a fault of a gateway. Its function strike returns a text with the number or duration of the
// faults.
type gatewayFault struct {
	name   string
	strike func(g *confined.Gateway) string
	once   bool // it is one outage
	hangs  bool // the gateway hangs for longer than a command waits
}

// lockedByAnother is part of the error of a command that has waited for SQLite's lock. A gateway that hangs while it
// writes keeps that lock.
const lockedByAnother = "another process has had it locked"

func gatewayFaults() []gatewayFault {
	return []gatewayFault{
		{name: "gateway killed and restarted", strike: func(g *confined.Gateway) string {
			const kills = 12
			for range kills {
				g.Kill()
				g.Start()
				rest(700 * time.Millisecond)
			}
			return fmt.Sprintf("%d kills", kills)
		}},
		{name: "gateway killed, and back later", strike: func(g *confined.Gateway) string {
			g.Kill()
			rest(gatewayAway)
			g.Start()
			return fmt.Sprintf("%v away", gatewayAway)
		}, once: true},
		{name: "gateway hung for a moment", strike: func(g *confined.Gateway) string {
			const times, moment = 4, 3 * time.Second
			for range times {
				g.Hang()
				rest(moment)
				g.Resume()
				rest(time.Second)
			}
			return fmt.Sprintf("%d times hung for %v", times, moment)
		}},
		{name: "gateway hung", strike: func(g *confined.Gateway) string {
			g.Hang()
			rest(gatewayAway)
			g.Resume()
			return fmt.Sprintf("hung for %v", gatewayAway)
		}, once: true, hangs: true},
		{name: "gateway hung, killed and restarted", strike: func(g *confined.Gateway) string {
			g.Hang()
			rest(gatewayAway / 2)
			g.Kill()
			g.Start()
			return fmt.Sprintf("hung for %v", gatewayAway/2)
		}, once: true, hangs: true},
	}
}

// TestGateway kills and suspends the gateway of a working fleet while the store keeps running. No request of
// an agent may be refused, a hook must run to its end through each outage, and no acknowledged write may be
// lost.
func TestGateway(t *testing.T) {
	need.Long(t)
	for _, store := range []struct {
		name string
		url  func(t *testing.T) string
	}{
		{"SQLite", func(*testing.T) string { return "" }},
		{"etcd", func(t *testing.T) string { return etcdtest.For(t, etcdtest.Options{}).URL("/outage") }},
	} {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			w := newGatewayWorld(t, store.url(t))
			services := []string{"hub", "east", "west"}
			w.deployFleet(services, 3)
			w.settle("the deployment")
			for _, f := range gatewayFaults() {
				w.outlive(f, services, store.name)
			}
		})
	}
}

// newGatewayWorld bootstraps an environment whose agents reach their state through a gateway in a separate
// process.
func newGatewayWorld(t *testing.T, url string) *world {
	t.Helper()
	w := prepareWorld(t, t.TempDir(), url)
	w.gateway = confined.NewGateway(t, cmp.Or(url, "sqlite:"+w.Env.StateFile()), w.Dir())
	w.Vars = append(w.Vars, w.gateway.Vars()...)
	w.bootstrap()
	w.gateway.AwaitReady()
	return w
}

// outlive lets the fault happen to a working fleet in which a hook is held. Operators can still reach the
// store.
func (w *world) outlive(f gatewayFault, services []string, store string) {
	w.t.Helper()
	client := w.holdHook()
	mark := w.mark()
	l := w.drive(services)
	rest(4 * time.Second)
	counted := f.strike(w.gateway)
	w.letGo()
	rest(4 * time.Second)

	commands := l.halt()
	for _, a := range refusals(commands) {
		if refusedByRule(a) || f.hangs && strings.Contains(a.err, lockedByAnother) {
			continue
		}
		w.t.Errorf("refused though the store was there: %s", a)
	}
	w.settle(f.name)
	w.checkOutlived(client)
	if f.once {
		w.checkSaidAtMostOnce(mark)
	}
	for _, refusal := range w.gateway.Refused() {
		w.t.Errorf("%s: an agent was refused: %s", f.name, refusal)
	}
	w.judge(f.name+", before "+store, fmt.Sprintf("%s, %d commands", counted, len(commands)))
	w.tellTrouble(mark)
}

// held is the unit in which a hook is held.
const held = "hub/0"

// holdHook makes a hook run until letGo, and returns its client id.
func (w *world) holdHook() (client string) {
	w.t.Helper()
	w.control("hold", true)
	w.control("go", false)
	before := len(w.records()[held])
	w.Juju("set", "hub", fmt.Sprintf("set=turn=held-%d", before))
	w.eventually("a hook is held", time.Minute, func() string {
		all, _ := judge.Runs(w.records()[held])
		last := all[len(all)-1]
		if last.Ended || last.Hook != "config-changed" || last.Wrote == 0 {
			return "none is"
		}
		client = last.Client
		return await.Unless(len(w.records()[held]) > before, "none is yet")
	})
	return client
}

// letGo lets the held hook end, and stops holding hooks.
func (w *world) letGo() {
	w.t.Helper()
	w.control("hold", false)
	w.control("go", true)
}

// control creates or removes one of the held unit's control files.
func (w *world) control(word string, there bool) {
	w.t.Helper()
	file := w.Unit(held, "control", word+"-config-changed")
	if there {
		check(w.t, os.WriteFile(file, nil, 0o644))
		return
	}
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		check(w.t, err)
	}
}

// checkOutlived checks that the held hook has succeeded, and that its number is not lost.
func (w *world) checkOutlived(client string) {
	w.t.Helper()
	all, _ := judge.Runs(w.records()[held])
	for _, r := range all {
		if r.Client != client {
			continue
		}
		if r.Failed() {
			w.t.Errorf("the hook that ran when the gateway went away has failed: ended %v, exit %d", r.Ended, r.Exit)
		}
		return
	}
	w.t.Errorf("the hook that ran when the gateway went away has no record")
}
