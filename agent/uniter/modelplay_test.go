package uniter

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"bijou/agent/hook"
	"bijou/agent/uniter/decide"
	"bijou/agent/unitlog"
	"bijou/state"
	"bijou/state/unitdir"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/statetest"
)

// TestModel plays random lives of a unit. It compares each step of the agent with the model, and checks
// the record of its hooks with the judge.
func TestModel(t *testing.T) {
	lives := 600
	if testing.Short() {
		lives = 100
	}
	hooks := 0
	for seed := range uint64(lives) {
		synctest.Test(t, func(t *testing.T) {
			hooks += playLife(t, randomScript(seed))
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
	t.Logf("%d lives, %d hooks", lives, hooks)
}

// randomScript returns the script of one long life or of many short ones. In the short lives agents
// die, charms change and operators answer more often.
func randomScript(seed uint64) []byte {
	dice := rand.New(rand.NewPCG(seed, 0))
	length, often := 400, ""
	if seed%20 != 0 {
		length, often = 30+dice.IntN(300), "\x01\x02\x05\x06\x07\x08\x09"
	}
	script := make([]byte, length)
	for i := range script {
		script[i] = byte(dice.Uint32())
		if often != "" && dice.IntN(4) == 0 {
			script[i] = often[dice.IntN(len(often))]
		}
	}
	return script
}

// FuzzModel plays the lives that a fuzzer generates.
func FuzzModel(f *testing.F) {
	f.Add([]byte("0123456789abcdefghijklmnopqrstuvwxyz"))
	f.Fuzz(func(t *testing.T, script []byte) {
		synctest.Test(t, func(t *testing.T) { playLife(t, script[:min(len(script), 1000)]) })
	})
}

// relationsOfPlay returns the relations of app: a peer relation, one with a and one with b.
func relationsOfPlay() []hook.Relation {
	return []hook.Relation{
		{ID: 0, Name: "ring", RemoteService: "app", Peer: true},
		{ID: 1, Name: "db", RemoteService: "a"},
		{ID: 2, Name: "db", RemoteService: "b"},
	}
}

const revisions = 4

// life is the unit app/0 and its surroundings: an agent without processes and without a loop, over a
// state in memory.
type life struct {
	t      *testing.T
	st     *state.State
	u      *uniter
	m      *model
	script []byte

	flight     *runningHook // nil if no hook is running
	begun      bool         // whether its process has been started
	configured int          // the model's configured when the hook began
	gone       bool
	events     []judge.Event
	turn       int
}

// playLife plays a script and returns the number of hooks that ran.
func playLife(t *testing.T, script []byte) int {
	l := newLife(t, script)
	for len(l.script) > 0 && !l.gone && !t.Failed() {
		l.event()
		l.look()
	}
	l.u.output.Close()
	l.u.watch.Close()
	for _, wrong := range judge.Violations(l.events) {
		// In this play, members return while their departed hook is still queued, and the hook becomes a
		// changed hook at the end of the queue. Real units do not do this. The model itself checks which
		// hooks follow each other directly.
		if !strings.Contains(wrong, "directly follow") {
			t.Error(wrong)
		}
	}
	if t.Failed() {
		t.Logf("the record:\n%s", l.story())
	}
	return len(l.events) / 2
}

// story returns the record of events, for debugging.
func (l *life) story() string {
	var b strings.Builder
	for _, e := range l.events {
		fmt.Fprintln(&b, e.Event, e.Hook, e.Remote, e.ID, e.Exit, e.Revision)
	}
	return b.String()
}

func newLife(t *testing.T, script []byte) *life {
	st := statetest.New(t)
	metadata := "peers:\n  ring: ring\nrequires:\n  db: db\n"
	for n := range revisions {
		f := statetest.Meta("app", metadata)
		f["revision"], f["config.yaml"] = strconv.Itoa(n+1), "options:\n  turn: {type: int}\n"
		if c := statetest.AddCharm(t, st, f); n == 0 {
			statetest.AddServiceOf(t, st, c, "app", 3)
		}
	}
	db := statetest.AddCharm(t, st, statetest.Meta("db", "provides:\n  db: db\n"))
	for _, s := range []string{"a", "b"} {
		statetest.AddServiceOf(t, st, db, s, 2)
		statetest.Relate(t, st, "app", s)
	}
	o := Options{State: st, Unit: "app/0", Log: slog.New(slog.DiscardHandler), Folder: unitdir.Folder(t.TempDir())}
	logs := unitlog.NewSender(st, o.Log)
	t.Cleanup(logs.Close)
	u := &uniter{Options: o, rawUpdate: st.Update, output: logs.Open(o.Unit, "")}
	u.Update = u.commit
	return &life{t: t, st: st, u: u, m: newModel(), script: script}
}

// pick takes the next number below n from the script.
func (l *life) pick(n int) int {
	if len(l.script) == 0 {
		return 0
	}
	b := l.script[0]
	l.script = l.script[1:]
	return int(b) % n
}

// snapshot returns the agent's view.
func (l *life) snapshot() decide.Snapshot {
	synctest.Wait() // for the watch's event
	s, err := l.u.takeSnapshot(l.t.Context())
	l.must(err)
	s.Now, s.LastHook, s.Running = now(), now(), l.flight != nil
	s.StatusInterval = 0
	return s
}

// next returns the agent's next step, and records the decision as the agent does.
func (l *life) next(s decide.Snapshot) decide.Step {
	next := decide.Next(s)
	l.u.cache.noteDecided(next, s)
	return next
}

// look lets the agent and the model process the changes that have arrived.
func (l *life) look() {
	s := l.snapshot()
	l.m.dying = !s.Gone && s.Unit.Life != state.Alive
	for _, r := range relationsOfPlay() {
		rs, entered := s.Uniter.Relations[r.ID]
		delete(l.m.leaving, r.ID)
		if !entered || rs.State == state.RelationEnded {
			continue
		}
		if s.IsLeaving(r.ID) {
			l.m.leaving[r.ID] = true
		}
		for n := range 4 {
			unit := fmt.Sprintf("%s/%d", r.RemoteService, n)
			i := slices.IndexFunc(s.Relations[r.ID].Members, func(m state.Member) bool { return m.Unit == unit })
			var version int64
			if i >= 0 {
				version = s.Relations[r.ID].Members[i].Version
			}
			l.m.look(r, unit, i >= 0 && !s.IsLeaving(r.ID), version)
		}
	}
	for !s.Gone {
		e, ok := l.next(s).(decide.Enqueue)
		if !ok {
			break
		}
		l.must(l.u.enqueue(l.t.Context(), e.Arrivals))
		s = l.snapshot()
	}
	l.compare(s)
}

func (l *life) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// compare compares the agent's queue with the model's.
func (l *life) compare(s decide.Snapshot) {
	type placed struct {
		place int64
		text  string
	}
	var all []placed
	for id, members := range s.Uniter.Members {
		for member, state := range members {
			if state.Pending != "" {
				all = append(all, placed{state.Place, memberKey(id, member) + " " + state.Pending})
			}
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return int(a.place - b.place) })
	var got, want []string
	for _, p := range all {
		got = append(got, p.text)
	}
	for _, w := range l.m.queue {
		want = append(want, w.String())
	}
	if !slices.Equal(got, want) && !s.Gone {
		l.t.Errorf("the queue is\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

var errUnknownStep = errors.New("internal error: a step that the play does not know")
