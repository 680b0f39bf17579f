package copies

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/testscripts/judge"
)

// folder is an environment in a file of this host, with one unit.
type folder struct {
	t      *testing.T
	dir    string
	binary string
}

func newFolder(t *testing.T) *folder {
	t.Helper()
	w := &folder{t: t, dir: t.TempDir(), binary: product(t)}
	w.order(1, 2)
	makeCharm(t, filepath.Join(w.dir, "recorder"), w.dir, w.record())
	t.Cleanup(w.destroy)
	w.juju("bootstrap", "--config", "update-status-interval=0")
	w.juju("deploy", filepath.Join(w.dir, "recorder"), "app")
	w.awaitHooks(3) // install, config-changed, start
	return w
}

func (w *folder) env() string    { return filepath.Join(w.dir, "home", "default") }
func (w *folder) record() string { return filepath.Join(w.dir, "record") }

func (w *folder) destroy() {
	if w.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(w.env(), "machines", "0", "agent.log"))
		w.t.Logf("agent.log ends:\n%s", log[max(0, len(log)-4000):])
	}
	if out, err := w.command("destroy-environment", "-y", "--force", "default").CombinedOutput(); err != nil {
		w.t.Errorf("cannot clean up: %v\n%s", err, out)
	}
}

func (w *folder) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.binary, append([]string{"juju"}, args...)...)
	cmd.Env = append(os.Environ(), "BIJOU_HOME="+filepath.Dir(w.env()), "NO_COLOR=1", "BIJOU_STATE=")
	return cmd
}

func (w *folder) juju(args ...string) {
	w.t.Helper()
	if out, err := w.command(args...).CombinedOutput(); err != nil {
		w.t.Fatalf("juju %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// order says how many tenths of a second hooks take from now on.
func (w *folder) order(least, most int) {
	w.t.Helper()
	check(w.t, os.WriteFile(filepath.Join(w.dir, "tenths"), fmt.Appendf(nil, "%d %d\n", least, most), 0o644))
}

func (w *folder) events() []judge.Event {
	w.t.Helper()
	events, err := judge.Read(w.record())
	check(w.t, err)
	return events
}

// awaitHooks waits until so many more runs have ended, after those that have begun.
func (w *folder) awaitHooks(n int) {
	w.t.Helper()
	had := len(judge.Spans(w.events()))
	w.eventually("more hooks have ended", func() string {
		return unless(endedAfter(had, w.events()) >= n, "there are hooks to come")
	})
}

// awaitLong waits until a hook runs that has long to go, and returns it.
func (w *folder) awaitLong() (hook judge.Span) {
	w.t.Helper()
	w.eventually("a hook runs that takes long", func() string {
		var ok bool
		hook, ok = inFlight(w.events())
		return unless(ok, "none does")
	})
	return hook
}

func (w *folder) eventually(what string, not func() string) {
	w.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		why := not()
		if why == "" {
			return
		}
		if time.Now().After(end) {
			out, _ := w.command("status").CombinedOutput()
			w.t.Fatalf("never came true: %s\n%s\n%s", what, why, out)
		}
	}
}

func unless(so bool, why string) string {
	if so {
		return ""
	}
	return why
}

// missing is what the record lacks of what the state knows.
func (w *folder) missing() (lack string) {
	w.t.Helper()
	e, err := home.Load(w.env())
	check(w.t, err)
	s, err := state.Open(w.t.Context(), e.State)
	check(w.t, err)
	defer s.Close()
	check(w.t, s.View(w.t.Context(), func(v *state.View) error {
		end, err := judge.EndOf(v)
		lack = strings.Join(judge.Missing(end, map[string][]judge.Event{"app/0": judge.Merge(w.events())}), "; ")
		return err
	}))
	return lack
}
