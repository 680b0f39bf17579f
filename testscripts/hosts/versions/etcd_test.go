package versions

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"bijou/state"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// TestForward runs agents of the previous binary beside agents of this one, and then upgrades all to
// this one.
func TestForward(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	w := newPair(t, Former(t))
	w.goOver(Current(t))
	w.claimed(0, w.agent())
	w.claimed(1, w.far.Process.Pid)
}

// TestBack switches all agents back to the previous binary, and forward again. The claims that this binary
// has left must not prevent any agent from starting.
func TestBack(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	former, current := Former(t), Current(t)
	w := newPair(t, current)
	w.goOver(former)
	w.goOver(current)
	w.claimed(0, w.agent())
	w.claimed(1, w.far.Process.Pid)
}

// newPair returns an environment of two hosts, with a unit on each. The units are related.
func newPair(t *testing.T, binary string) *world {
	t.Helper()
	cluster := etcdtest.For(t, etcdtest.Options{})
	w := newWorld(t, binary, cluster.URL("/versions"), "--provider", "dummy")
	w.addFar()
	w.deploy("near", 0)
	w.deploy("far", 1)
	w.juju(binary, "add-relation", "far:client", "near:server")
	w.eventually("the units have met", func() string {
		// The hooks are install, config-changed, start, joined and changed.
		if w.runs("near/0") < 5 || w.runs("far/0") < 5 {
			return "there are hooks to come"
		}
		return ""
	})
	w.settle()
	return w
}

// addFar adds machine 1 and starts its agent on its own host. A claim from before the provisioner has started
// the machine's instance would be freed for that instance, so the agent starts after it.
func (w *world) addFar() {
	w.t.Helper()
	w.juju(w.current, "add-machine")
	w.eventually("machine 1 has an instance", func() (why string) {
		w.view(func(v *state.View) error {
			m, err := v.Machine("1")
			if m.InstanceID == "" {
				why = "there is no instance"
			}
			return err
		})
		return why
	})
	check(w.t, os.MkdirAll(w.env(1), 0o755))
	// docs/tutorials/many-machines.md says that a host needs these files.
	for _, part := range []string{"environment.yaml", "tools"} {
		if out, err := exec.Command("cp", "-a", filepath.Join(w.env(0), part), w.env(1)).CombinedOutput(); err != nil {
			w.t.Fatalf("cannot copy: %v\n%s", err, out)
		}
	}
	w.startFar()
}

// startFar starts machine 1's agent as its host would.
func (w *world) startFar() {
	w.t.Helper()
	agent := filepath.Join(w.env(1), "tools", w.tools(1), "machine-agent")
	check(w.t, os.MkdirAll(w.machine(1), 0o755))
	log, err := os.OpenFile(w.machine(1, "agent.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	check(w.t, err)
	defer log.Close()
	w.far = exec.Command(agent, "--machine", "1", "--env", w.env(1))
	w.far.Env = append(os.Environ(), "BIJOU_HOME="+filepath.Dir(w.env(1)))
	w.far.Stdout, w.far.Stderr = log, log
	check(w.t, w.far.Start())
}

// stopFar ends machine 1's agent in an orderly way.
func (w *world) stopFar() {
	w.t.Helper()
	check(w.t, w.far.Process.Signal(syscall.SIGTERM))
	check(w.t, w.far.Wait())
	w.far = nil
}

// goOver switches the environment to a different binary while machine 1 is away. Machine 1 comes back
// with the old binary, and works beside machine 0 before it switches too.
func (w *world) goOver(to string) {
	w.t.Helper()
	from, was := w.current, w.tools(0)
	w.stopFar()
	w.juju(to, "upgrade-juju", "--allow-downgrade", "--wait", "3m")
	w.current = to
	next := w.tools(0)
	if was == next {
		w.t.Fatalf("both binaries are %s", next)
	}
	// Machine 1 does not see this change now, but must see it in the end.
	w.change(from, to)
	allow := w.refuseTools(next)
	w.startFar()
	for range 3 {
		w.change(to, from)
		w.settle()
	}
	if zero, one := w.ran(0), w.ran(1); zero != next || one != was {
		w.t.Fatalf("machines 0 and 1 run %s and %s, want %s and %s", zero, one, next, was)
	}
	w.change(from, to)
	// Hooks may be running at this moment.
	allow()
	w.eventually("machine 1 goes over", func() string {
		if ran := w.ran(1); ran != next {
			return "it runs " + ran
		}
		return ""
	})
	w.change(to, to)
	w.settle()
}

// refuseTools makes machine 1's host refuse a binary until allow is called. It puts a file in place of the
// binary's directory, which may exist already.
func (w *world) refuseTools(name string) (allow func()) {
	w.t.Helper()
	path := filepath.Join(w.env(1), "tools", name)
	check(w.t, os.RemoveAll(path))
	check(w.t, os.WriteFile(path, nil, 0o600))
	return func() {
		w.t.Helper()
		check(w.t, os.Remove(path))
	}
}

// change makes both units write a new number into their relation. For one unit the operator sets the number
// with one binary, and for the other unit with the other binary.
func (w *world) change(near, far string) {
	w.t.Helper()
	w.turn++
	w.juju(near, "set", "near", "set=turn="+strconv.Itoa(w.turn))
	w.juju(far, "set", "far", "set=turn="+strconv.Itoa(w.turn))
}
