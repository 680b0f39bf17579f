package outage

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/status"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
	"bijou/testscripts/kit/need"
)

// cuts is the number of power cuts.
const cuts = 25

// soundProgram checks the file with a different SQLite from ours.
const soundProgram = `
import sqlite3, sys
print(*[row[0] for row in sqlite3.connect(sys.argv[1]).execute("PRAGMA integrity_check")], sep="\n")
`

// sound checks that a SQLite file is intact.
func sound(t *testing.T, path string) {
	t.Helper()
	out, err := localenv.Python(t, soundProgram, path).CombinedOutput()
	if string(out) != "ok\n" || err != nil {
		t.Errorf("%s is not whole: %v\n%s", path, err, out)
	}
}

// promises contains the operator's turns at a power cut: kept is the last turn that must be in the state, and
// begun is the last turn that may be in it.
type promises struct{ kept, begun atomic.Int64 }

// TestPowerCut copies the files at random moments under a working fleet. Each copy must open, be intact, and
// contain all writes that had been acknowledged by then, and none that had not begun. The last cut is real:
// every process dies, and the environment continues from the copy.
func TestPowerCut(t *testing.T) {
	need.Long(t)
	w := newWorld(t, "")
	services := []string{"hub", "east", "west"}
	w.deployFleet(services, 3)
	var p promises
	l := newLoad(w, services)
	l.running.Go(func() { l.repeat(20*time.Millisecond, func(n int) { p.turn(w, int64(n)) }) })
	l.running.Go(func() { l.repeat(4*time.Second, l.relate) })
	rest(3 * time.Second)
	var last int64
	for range cuts {
		rest(200*time.Millisecond + rand.N(700*time.Millisecond))
		last = w.cut(&p, last)
	}
	l.halt()
	w.Juju("set", "hub", "set=turn=last")
	rest(time.Second) // time for hooks to run
	w.cutInEarnest()
	w.Juju("start")
	w.settle("the power cut")
	w.judge("power cut", fmt.Sprintf("%d cuts, %d turns", cuts+1, p.kept.Load()))
}

// turn does one write as the operator.
func (p *promises) turn(w *world, n int64) {
	p.begun.Store(n)
	if a := w.ask("set", "hub", fmt.Sprintf("set=turn=%d", n)); a.code == 0 {
		p.kept.Store(n)
	}
}

// cut stops every process that writes to the file, copies it, and continues them. It returns the copy's
// revision, which is not lower than the previous one.
func (w *world) cut(p *promises, before int64) int64 {
	w.t.Helper()
	cont := w.freeze()
	copied := filepath.Join(w.t.TempDir(), "state.db")
	w.copyState(copied)
	kept, begun, done := p.kept.Load(), p.begun.Load(), w.doneConfig()
	cont()
	s, err := state.Open(w.t.Context(), "sqlite:"+copied)
	check(w.t, err)
	defer s.Close()
	var revision int64
	err = s.View(w.t.Context(), func(v *state.View) error {
		if _, err := status.Read(v, status.Options{Now: time.Now()}); err != nil {
			return err
		}
		w.checkPrefix(v, kept, begun, done)
		revision, err = v.Revision()
		return err
	})
	if err != nil || revision < before {
		w.t.Errorf("the copy has revision %d, the one before %d: %v", revision, before, err)
	}
	sound(w.t, copied)
	return revision
}

// checkPrefix compares a copy with the writes that had been acknowledged.
func (w *world) checkPrefix(v *state.View, kept, begun int64, done map[string]int) {
	w.t.Helper()
	c, err := v.Config("hub")
	check(w.t, err)
	set, _ := c.Values["set"].(string)
	turn, _ := strconv.ParseInt(strings.TrimPrefix(set, "turn="), 10, 64)
	if turn < kept || turn > begun {
		w.t.Errorf("the copy has turn %d; %d was promised, %d had begun", turn, kept, begun)
	}
	relations, err := v.Relations()
	check(w.t, err)
	for _, r := range relations {
		members, err := v.Members(r.ID)
		check(w.t, err)
		for _, m := range members {
			s, err := v.Settings(r.ID, m.Unit)
			check(w.t, err)
			n, err := strconv.Atoi(s.Values["beat"])
			if err == nil && n < done[m.Unit] {
				w.t.Errorf("%s has done %d beats, relation %d has %d", m.Unit, done[m.Unit], r.ID, n)
			}
		}
	}
}

// doneConfig returns the number of config-changed hooks of each unit that have succeeded according to the
// agent's log.
func (w *world) doneConfig() map[string]int {
	done := map[string]int{}
	for _, m := range regexp.MustCompile(`msg="hook is done".* unit=(\S+) .*hook=config-changed`).FindAllStringSubmatch(w.log(0), -1) {
		done[m[1]]++
	}
	return done
}

// copyState copies the files as they are now.
func (w *world) copyState(to string) {
	w.t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		copyFile(w.t, w.StateFile()+suffix, to+suffix)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if os.IsNotExist(err) {
		return
	}
	check(t, err)
	defer in.Close()
	out, err := os.Create(to)
	check(t, err)
	_, err = io.Copy(out, in)
	check(t, err)
	check(t, out.Close())
}

// cutInEarnest kills every process of the environment at once, and replaces the files with copies.
func (w *world) cutInEarnest() {
	w.t.Helper()
	cont := w.freeze()
	copied := filepath.Join(w.t.TempDir(), "state.db")
	w.copyState(copied)
	for _, pid := range w.users() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	cont() // this continues no process, since all of them are dead
	w.killAll()
	w.deleteState()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		copyFile(w.t, copied+suffix, w.StateFile()+suffix)
	}
	w.noteKill()
}

// killAll kills every process that has the state open, and all hooks.
func (w *world) killAll() {
	w.t.Helper()
	w.eventually("all processes are dead", time.Minute, func() string {
		left := append(w.users(), w.hookPIDs()...)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return await.Unless(len(left) == 0, "%v", left)
	})
}

// noteKill records in every unit's record that its hooks were killed at this point.
func (w *world) noteKill() {
	w.t.Helper()
	logs, err := filepath.Glob(w.recorderLogs())
	check(w.t, err)
	for _, log := range logs {
		check(w.t, judge.Append(log, judge.Event{Event: judge.Killed}))
	}
}
