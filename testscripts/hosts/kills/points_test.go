package kills

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/state/actions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
	"bijou/testscripts/kit/need"
)

// stimulus is an operator's action that brings an agent to a point. It is repeated until the agent has
// died there.
type stimulus func(s *stage)

// points returns all points at which an agent can be killed, each with its stimulus.
func points() map[string]stimulus {
	all := map[string]stimulus{}
	add := func(do stimulus, points ...string) {
		for _, p := range points {
			if step, ok := strings.CutPrefix(p, "commit "); ok {
				all["before-"+step], all["after-"+step] = do, do
				continue
			}
			all[p] = do
		}
	}
	add((*stage).nothing, "commit claim", "commit machine", "commit recover")
	add((*stage).change, "commit enqueue", "commit begin", "commit success",
		"before-spawn", "after-spawn", "after-note", "after-let-go", "after-exit", "after-commit")
	add((*stage).fail, "commit failure")
	add((*stage).resolve, "commit resolve")
	add((*stage).upgrade, "commit deploy", "before-unpack", "before-swap", "after-exchange", "after-swap", "commit deployed")
	add((*stage).relate, "commit enter", "commit leave")
	add((*stage).retire, "commit retire")
	add((*stage).scale, "commit dead", "before-clear", "after-clear", "commit request")
	add((*stage).act, "commit action-end")
	add((*stage).debug, "commit debug-end")
	add((*stage).store, "commit storage-made", "commit storage-bound", "commit storage-released", "before-storage-removed", "after-storage-removed")
	return all
}

// TestPointsAreAll compares the list with the points in the agent's code.
func TestPointsAreAll(t *testing.T) {
	var has []string
	one := regexp.MustCompile(`[fF]ault(?:Point)?\("([a-z-]+)"\)`)
	commit := regexp.MustCompile(`(?:commitStep|stepUpdater)\((?:ctx, )?"([a-z-]+)"`)
	read := func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, m := range one.FindAllStringSubmatch(string(data), -1) {
			has = append(has, m[1])
		}
		for _, m := range commit.FindAllStringSubmatch(string(data), -1) {
			has = append(has, "before-"+m[1], "after-"+m[1])
		}
		return err
	}
	for _, dir := range []string{"agent", "provision", "state/unitdir"} {
		check(t, filepath.WalkDir(filepath.Join("..", "..", "..", dir), read))
	}
	slices.Sort(has)
	if diff := cmp.Diff(names(), slices.Compact(has)); diff != "" {
		t.Errorf("points at which agents are killed (-), points that they have (+):\n%s", diff)
	}
}

// names returns the names of all points, sorted.
func names() (all []string) {
	for p := range points() {
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}

// TestPoints kills an agent at each of its points while units relate, change, fail, upgrade and leave.
func TestPoints(t *testing.T) {
	need.Whole(t)
	type turns struct {
		over  string
		times int
	}
	all := []turns{{overSQLite, 1}}
	if need.LongRun() {
		all = []turns{{overSQLite, 3}, {overGateway, 2}}
	}
	const stages = 2 // stages that run at the same time
	for _, c := range all {
		for part := range stages {
			t.Run(fmt.Sprint(c.over, "-", part), func(t *testing.T) {
				t.Parallel()
				s := newStage(t, c.over)
				died := 0
				for n := range c.times {
					for i, p := range names() {
						if i%stages == part {
							s.dieAt(p, 1+(n+i)%4)
							died++
						}
					}
				}
				s.end(died)
			})
		}
	}
}

// stage is an environment for the points. Its units can relate, change, fail, upgrade and leave.
type stage struct {
	*world
	turn    int
	failing bool
	marked  map[string]bool // storages into which a file was written
}

func newStage(t *testing.T, over string) *stage {
	s := &stage{world: newWorld(t, over), marked: map[string]bool{}}
	s.Juju("set-environment", "automatically-retry-hooks=false")
	s.Juju("deploy", s.charm, "hub", "-n", "2")
	s.Juju("deploy", s.charm, "east", "-n", "2")
	s.Juju("deploy", s.charm, "north")
	s.Juju("deploy", s.subordinate(), "logger")
	s.Juju("deploy", s.keeper(), "keeper", "-n", "2")
	s.Juju("add-relation", "east:client", "hub:server")
	s.settle()
	return s
}

// subordinate makes a subordinate charm whose records can be judged.
func (s *stage) subordinate() string {
	folder := s.newCharm("logger")
	metadata := filepath.Join(folder, "metadata.yaml")
	data, err := os.ReadFile(metadata)
	check(s.t, err)
	text := strings.Replace(string(data), "name: recorder", "name: logger\nsubordinate: true", 1)
	text = strings.Replace(text, "requires:\n", "requires:\n  info: {interface: juju-info, scope: container}\n", 1)
	check(s.t, os.WriteFile(metadata, []byte(text), 0o644))
	for _, kind := range []string{"joined", "changed", "departed", "broken"} {
		check(s.t, os.Symlink("record", filepath.Join(folder, "hooks", "info-relation-"+kind)))
	}
	return folder
}

// dieAt kills the agent, and then makes the next one die when it reaches a point for the n-th time.
func (s *stage) dieAt(point string, n int) {
	s.t.Helper()
	if strings.HasSuffix(point, "-machine") || strings.HasSuffix(point, "-claim") {
		n = 1 // a process reaches this point only once
	}
	fault := fmt.Sprintf("%s:%d", point, n)
	s.t.Log(fault)
	check(s.t, kill9(s.Agent()))
	s.bury(s.Agent())
	s.start(fault)
	pid := s.Agent()
	do := points()[point]
	await.Until(s.t, await.Poll{Limit: 6 * time.Minute}, "the agent comes to "+fault, func() bool {
		if localenv.Alive(pid) {
			do(s)
			s.retryUntil(2*time.Second, func() bool { return !localenv.Alive(pid) })
		}
		return !localenv.Alive(pid)
	})
	s.bury(pid)
	s.start("")
}

// retry retries every failed hook.
func (s *stage) retry() {
	for _, u := range s.failed() {
		if u.unit == "east/0" && s.failing {
			continue
		}
		s.Try(append([]string{"resolved", "--retry", u.unit}, u.relations...)...)
	}
}

// trouble is a unit with a failed hook. relations is empty if the hook is the unit's own and not a
// relation's.
type trouble struct {
	unit      string
	relations []string
}

// failed returns the units in error.
func (s *stage) failed() (all []trouble) {
	s.view(func(v *state.View) error {
		units, err := v.Units("")
		for _, u := range units {
			own, err := v.Uniter(u.Name)
			if err != nil {
				return err
			}
			if own.Workflow.Failure != nil {
				all = append(all, trouble{unit: u.Name})
			}
			for id, r := range own.Relations {
				if r.Failure != nil {
					all = append(all, trouble{u.Name, []string{fmt.Sprint(r.Name, ":", id)}})
				}
			}
		}
		return err
	})
	return all
}

// until waits until the condition holds, and retries failed hooks while it waits. It stops after a limit, or
// when the agent dies.
func (s *stage) until(so func() bool) (came bool) {
	pid := s.Agent()
	s.retryUntil(2*time.Minute, func() bool {
		came = so()
		return came || !localenv.Alive(pid)
	})
	return came
}

// retryUntil retries failed hooks until the condition holds or the limit is over.
func (s *stage) retryUntil(limit time.Duration, so func() bool) {
	_, _ = await.Try(await.Poll{Limit: limit, Pause: 20 * time.Millisecond}, func() bool {
		if so() {
			return true
		}
		s.retry()
		return false
	})
}

// started returns a condition: all units of a service have started, and there is at least the given number of
// them.
func (s *stage) started(service string, least int) func() bool {
	return func() bool {
		units := s.units(service)
		n := 0
		s.view(func(v *state.View) error {
			for _, u := range units {
				w, err := v.Workflow(u.Name)
				if err != nil {
					return err
				}
				if w.State == "started" {
					n++
				}
			}
			return nil
		})
		return n == len(units) && n >= least
	}
}

func (s *stage) nothing() {}

// change makes the hubs write settings, so that the other units must run hooks.
func (s *stage) change() {
	s.turn++
	s.Juju("set", "hub", fmt.Sprintf("set=turn=%d", s.turn))
}

// failNext sets whether config-changed of east/0 fails.
func (s *stage) failNext(fails bool) {
	file := s.Unit("east/0", "control", "fail-config-changed")
	if s.failing = fails; fails {
		check(s.t, os.WriteFile(file, []byte("1"), 0o644))
		return
	}
	check(s.t, os.Remove(file))
}

// fail makes a hook of a unit fail.
func (s *stage) fail() {
	s.failNext(true)
	s.turn++
	s.Juju("set", "east", fmt.Sprintf("set=turn=%d", s.turn))
	s.until(s.inError)
	s.failNext(false)
}

// inError reports whether the unit that was made to fail has failed.
func (s *stage) inError() bool {
	return slices.ContainsFunc(s.failed(), func(u trouble) bool { return u.unit == "east/0" && u.relations == nil })
}

// resolve resolves a failed hook, so that it counts as done.
func (s *stage) resolve() {
	s.failNext(true)
	s.turn++
	s.Juju("set", "east", fmt.Sprintf("set=turn=%d", s.turn))
	if s.until(s.inError) {
		var failed string
		s.view(func(v *state.View) error {
			w, err := v.Workflow("east/0")
			failed = w.Failure.Hook.Name
			return err
		})
		check(s.t, judge.Append(s.Unit("east/0", "recorder.log"), judge.Event{Event: judge.Resolved, Hook: failed}))
		s.Juju("resolved", "--no-retry", "east/0")
		s.until(func() bool { return !s.inError() })
	}
	s.failNext(false)
}

// upgrade upgrades a service to a newer charm.
func (s *stage) upgrade() {
	s.turn++
	check(s.t, os.WriteFile(filepath.Join(s.charm, "turn"), []byte(fmt.Sprint(s.turn)), 0o644))
	s.Try("upgrade-charm", "east")
	s.Try("upgrade-charm", "hub")
}

// relate adds a relation or removes it.
func (s *stage) relate() {
	s.turn++
	s.Try([]string{"add-relation", "destroy-relation"}[s.turn%2], "hub:client", "north:server")
}

// retire removes the subordinate's units from the service that they were added to.
func (s *stage) retire() {
	s.Try("add-relation", "logger:info", "east")
	if s.until(s.started("logger", 2)) {
		s.Juju("destroy-relation", "logger:info", "east")
		s.until(func() bool { return len(s.units("logger")) == 0 })
	}
}

// scale adds a unit and removes it.
func (s *stage) scale() {
	s.Juju("add-unit", "north")
	if !s.until(s.started("north", 2)) {
		return
	}
	for _, u := range s.units("north")[1:] {
		if u.Life == state.Alive { // a unit of the previous round may leave at any moment
			s.Juju("remove-unit", u.Name)
		}
	}
	s.until(func() bool { return len(s.units("north")) == 1 })
}

// update writes to the state.
func (s *stage) update(f func(tx *state.Tx) error) {
	st := s.open()
	defer st.Close()
	check(s.t, st.Update(s.t.Context(), f))
}

// act makes a unit run a command.
func (s *stage) act() {
	s.update(func(tx *state.Tx) error {
		_, err := actions.Add(tx, actions.Action{Unit: "east/1", Command: []string{"true"}}, time.Now())
		return err
	})
}

// debug writes the record of a debug session that has ended. The next hook finds it.
func (s *stage) debug() {
	s.update(func(tx *state.Tx) error {
		return actions.SetDebug(tx, "east/0", actions.Debug{Socket: filepath.Join(s.Home, "no-tmux")})
	})
	s.turn++
	s.Juju("set", "east", fmt.Sprintf("set=turn=%d", s.turn))
}

// end waits until everything has settled, checks the records against the rules, and removes everything.
func (s *stage) end(died int) {
	s.Juju("set-environment", "automatically-retry-hooks=true")
	s.eventually("nothing has failed", func() string {
		s.retry()
		return await.Unless(len(s.failed()) == 0, "%v", s.failed())
	})
	s.settle()
	s.checkStorage()
	s.removeAll("logger", "north", "east", "hub", "keeper")
	s.judge("points", fmt.Sprintf("%d points of %d, ", died, len(points())))
}
