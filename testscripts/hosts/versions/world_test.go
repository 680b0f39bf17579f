package versions

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/localenv"
)

// world is an environment whose machines 0 and 1 are on different hosts: each has its own BIJOU_HOME.
type world struct {
	t       *testing.T
	url     string // the state's URL; empty for a file
	dir     string // the test's directory
	charm   string
	path    string            // the PATH
	current string            // the binary of operators
	records map[string]string // by unit
	turn    int               // the number of changes of settings
	far     *exec.Cmd         // machine 1's agent; nil while it is not running
}

// newWorld bootstraps an environment with the given binary.
func newWorld(t *testing.T, binary, url string, args ...string) *world {
	t.Helper()
	w := &world{t: t, url: url, dir: t.TempDir(), path: os.Getenv("PATH"), current: binary, records: map[string]string{}}
	w.charm = filepath.Join(w.dir, "recorder")
	check(t, judge.Charm(w.charm, filepath.Join("..", "..", "charms", "recorder"), w.dir))
	t.Cleanup(w.destroy)
	w.juju(binary, append([]string{"bootstrap", "--config", "update-status-interval=0"}, args...)...)
	return w
}

// destroy ends machine 1's agent and destroys the environment.
func (w *world) destroy() {
	if w.t.Failed() {
		for id := range 2 {
			log, _ := os.ReadFile(w.machine(id, "agent.log"))
			w.t.Logf("the log of machine %d ends:\n%s", id, log[max(0, len(log)-5000):])
		}
	}
	if w.far != nil {
		_ = w.far.Process.Kill()
		_ = w.far.Wait()
	}
	if out, err := w.command(w.current, "destroy-environment", "-y", "--force", "default").CombinedOutput(); err != nil {
		w.t.Errorf("cannot clean up: %v\n%s", err, out)
	}
}

// env returns the environment's directory on that machine's host.
func (w *world) env(id int) string {
	return filepath.Join(w.dir, "host-"+strconv.Itoa(id), "default")
}

// machine returns the path of a file in a machine's directory.
func (w *world) machine(id int, parts ...string) string {
	return filepath.Join(append([]string{w.env(id), "machines", strconv.Itoa(id)}, parts...)...)
}

// command returns an operator's command of the given binary.
func (w *world) command(binary string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, append([]string{"juju"}, args...)...)
	cmd.Env = append(os.Environ(), "BIJOU_HOME="+filepath.Dir(w.env(0)), "NO_COLOR=1", "BIJOU_STATE="+w.url)
	return cmd
}

// juju runs a command of the given binary, which must succeed.
func (w *world) juju(binary string, args ...string) {
	w.t.Helper()
	if out, err := w.command(binary, args...).CombinedOutput(); err != nil {
		w.t.Fatalf("juju %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// deploy makes a service whose unit is on that machine.
func (w *world) deploy(service string, id int) {
	w.t.Helper()
	w.juju(w.current, "deploy", w.charm, service, "--to", strconv.Itoa(id))
	w.records[service+"/0"] = w.machine(id, "units", service+"-0", "recorder.log")
}

// tools returns the name of the environment's binary from the record on that machine's host.
func (w *world) tools(id int) string {
	w.t.Helper()
	e, err := home.Load(w.env(id))
	check(w.t, err)
	return e.Tools
}

// state returns the URL of the environment's state.
func (w *world) state() string {
	w.t.Helper()
	e, err := home.Load(w.env(0))
	check(w.t, err)
	return e.State
}

// view reads the state.
func (w *world) view(f func(v *state.View) error) {
	w.t.Helper()
	s, err := state.Open(w.t.Context(), w.state())
	check(w.t, err)
	defer s.Close()
	check(w.t, s.View(w.t.Context(), f))
}

// ran returns the binary that a machine's agent runs.
func (w *world) ran(id int) (tools string) {
	w.t.Helper()
	w.view(func(v *state.View) error {
		m, err := v.Machine(strconv.Itoa(id))
		tools = m.Tools
		return err
	})
	return tools
}

// settle waits until every unit has run all hooks that are due, and checks all records against the rules.
func (w *world) settle() {
	w.t.Helper()
	all := map[string][]judge.Event{}
	w.eventually("everything is told", func() string {
		for unit, path := range w.records {
			events, err := judge.Read(path)
			check(w.t, err)
			all[unit] = events
		}
		lack, err := judge.MissingFrom(w.t.Context(), w.state(), all)
		check(w.t, err)
		return strings.Join(lack, "\n")
	})
	for _, wrong := range judge.Wrong(all) {
		w.t.Error(wrong)
	}
}

// runs counts the hooks that a unit has finished.
func (w *world) runs(unit string) (n int) {
	w.t.Helper()
	events, err := judge.Read(w.records[unit])
	check(w.t, err)
	for _, e := range events {
		if e.Event == judge.Ended && e.Exit == 0 {
			n++
		}
	}
	return n
}

// eventually waits until the function not returns "". Until then, the function returns the reason to wait longer. The
// limit is far longer than the wait needs.
func (w *world) eventually(what string, not func() string) {
	w.t.Helper()
	await.Until(w.t, await.Poll{Limit: 3 * time.Minute, Pause: 50 * time.Millisecond, Report: func() string {
		out, _ := w.command(w.current, "status").CombinedOutput()
		return string(out)
	}}, what, not)
}

// agent returns the process of machine 0.
func (w *world) agent() int {
	w.t.Helper()
	return localenv.PID(w.t, w.machine(0, "agent.pid"))
}

// claimed waits until the process holds the machine's claim.
func (w *world) claimed(id, pid int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("the claim of machine %d is process %d's", id, pid), func() (why string) {
		w.view(func(v *state.View) error {
			h, held, err := v.ClaimHolder(strconv.Itoa(id))
			if !held || h.PID != pid {
				why = fmt.Sprintf("held: %v, by %v", held, h)
			}
			return err
		})
		return why
	})
}
