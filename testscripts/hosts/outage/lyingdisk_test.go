package outage

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/state"
	"bijou/testscripts/fakes/lyingdisk"
	"bijou/testscripts/kit/need"
)

// lyingWorld is a fleet whose state is on a disk that loses data and fails.
type lyingWorld struct {
	*world
	disk     *lyingdisk.Disk
	services []string
	promises promises
}

func newLyingWorld(t *testing.T) *lyingWorld {
	t.Helper()
	need.Long(t)
	d := lyingdisk.New(t)
	w := &lyingWorld{world: newWorld(t, "sqlite:"+filepath.Join(d.Path, "state.db")), disk: d, services: []string{"hub", "east", "west"}}
	w.deployFleet(w.services, 2)
	return w
}

// write starts a load that counts its acknowledged writes.
func (w *lyingWorld) write() *load {
	l := newLoad(w.world, w.services)
	from := w.promises.begun.Load() + 1
	l.running.Go(func() { l.repeat(30*time.Millisecond, func(n int) { w.promises.turn(w.world, from+int64(n)) }) })
	l.running.Go(func() { l.repeat(3*time.Second, l.relate) })
	return l
}

// loseUnsynced cuts the power. Every process ends immediately, and each page and each name that was not
// synced survives with that probability. Afterwards all acknowledged writes must exist.
func (w *lyingWorld) loseUnsynced(l *load, survive float64) {
	w.t.Helper()
	cont := w.freeze()
	for _, pid := range w.users() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	cont() // this continues no process, since all of them are dead
	l.halt()
	w.killAll()
	w.noteKill()
	w.disk.KillUsers()
	w.disk.Cut(survive)

	w.checkPromises()
	sound(w.t, w.StateFile())
	w.Juju("start")
}

// checkPromises checks that the state has the last acknowledged turn, or a later turn that had begun by then.
func (w *lyingWorld) checkPromises() {
	w.t.Helper()
	kept, begun := w.promises.kept.Load(), w.promises.begun.Load()
	var turn int64
	check(w.t, w.view(func(v *state.View) error {
		c, err := v.Config("hub")
		if err != nil {
			return err
		}
		set, _ := c.Values["set"].(string)
		turn, _ = strconv.ParseInt(strings.TrimPrefix(set, "turn="), 10, 64)
		return nil
	}))
	if turn < kept || turn > begun {
		w.t.Errorf("the state has turn %d; %d was promised, %d had begun", turn, kept, begun)
	}
}

// TestUnsyncedIsLost cuts the power under a working fleet. The disk keeps all synced data, and none or some
// of the other data.
func TestUnsyncedIsLost(t *testing.T) {
	w := newLyingWorld(t)
	chances := []float64{0, 0.5, 0, 0.9, 0.1, 0}
	for _, survive := range chances {
		l := w.write()
		rest(3 * time.Second)
		w.loseUnsynced(l, survive)
	}

	w.Juju("set", "hub", "set=turn=last")
	w.settle("the power cuts")
	w.judge("unsynced is lost", fmt.Sprintf("%d cuts, %d turns", len(chances), w.promises.kept.Load()))
}

// TestFailingDisk makes syncs, writes and reads of the state fail under a working fleet for a while. Refusals
// must contain the reason. Acknowledged writes must survive a power cut. Afterwards all units must continue.
func TestFailingDisk(t *testing.T) {
	w := newLyingWorld(t)
	for _, what := range []string{"sync", "write", "read"} {
		t.Run(what, func(t *testing.T) {
			outer := w.t
			w.t, w.Env.T = t, t
			defer func() { w.t, w.Env.T = outer, outer }()

			mark := w.mark()
			l := w.write()
			rest(2 * time.Second)
			w.disk.Fail(what)
			rest(3 * time.Second)

			a := w.ask("deploy", w.charm, "refused-"+what)
			if a.code != 1 || strings.Count(a.err, "error: ") != 1 || !strings.Contains(a.err, "the disk reports errors") ||
				!strings.Contains(a.err, "hint: look for the disk's errors in dmesg") {
				t.Errorf("want one error that names the disk, and what to do: %s", a)
			}
			for range 3 {
				w.disk.Heal()
				rest(2 * time.Second)
				w.disk.Fail(what)
				rest(time.Second)
			}
			failed := w.disk.Failed(what)
			w.disk.Heal()
			rest(2 * time.Second)
			w.loseUnsynced(l, 0)
			if failed == 0 {
				t.Errorf("no %s failed", what)
			}
			w.settle("the disk failed to " + what)
			w.judge("failing disk", fmt.Sprintf("%d failures to %s", failed, what))
			w.tellTrouble(mark)
		})
	}
}
