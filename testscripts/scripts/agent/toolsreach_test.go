package agent

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// TestToolsReach runs an agent from a copy of the environment's directory, as an agent on a different host
// would run. The agent must switch to a newer binary that only the state has.
func TestToolsReach(t *testing.T) {
	need.Whole(t)
	etcdtest.Need(t)
	// The cluster is created first, so that it outlives the world.
	cluster := etcdtest.For(t, etcdtest.Options{Members: 1})
	w := newWorld(t)
	w.Vars = append(w.Vars, "BIJOU_STATE="+cluster.URL("/tools"))
	w.Juju("bootstrap")
	w.Juju("stop")
	dir, away := filepath.Join(w.Home, "default"), t.TempDir()
	if out, err := exec.Command("cp", "-a", filepath.Join(dir, "environment.yaml"), filepath.Join(dir, "tools"), away).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The copy of the directory stands for a different host.
	w.Juju("start", "--moved", "--machine", "0")
	old := tools(t, away)[0]
	agent := exec.Command(filepath.Join(away, "tools", old, "machine-agent"), "--machine", "0", "--env", away)
	agent.Env = w.Vars
	log, err := os.Create(filepath.Join(away, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	agent.Stdout, agent.Stderr = log, log
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		_ = agent.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s", text)
		}
	}()
	w.eventually("the copy's agent runs", func() bool { return strings.Contains(w.Juju("status", "--wide"), "running") })
	w.Juju("deploy", "../../charms/trivial", "one")

	for n := range 2 {
		newer := newerBinary(t, n)
		upgrade := exec.Command(newer, "juju", "upgrade-juju")
		upgrade.Env = w.Vars
		if out, err := upgrade.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		w.eventually("the agent runs the newer binary", func() bool {
			exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(agent.Process.Pid), "exe"))
			return err == nil && exe == filepath.Join(away, "tools", tools(t, dir)[0], "bijou")
		})
	}
	w.eventually("units go on", func() bool { return strings.Contains(w.Juju("status", "--wide"), "started") })
	if left := tools(t, away); len(left) != 2 || strings.Contains(strings.Join(left, " "), old) {
		t.Errorf("there are %q, and the first was %s", left, old)
	}
	record, err := os.ReadFile(filepath.Join(away, "environment.yaml"))
	if err != nil || !strings.Contains(string(record), "tools: "+tools(t, dir)[0]) {
		t.Errorf("%v: %s", err, record)
	}
}

// tools returns the directories of tools, the newest first.
func tools(t *testing.T, env string) []string {
	t.Helper()
	out, err := exec.Command("ls", "-t", filepath.Join(env, "tools")).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// newerBinary makes a different file of this executable by appending to it, which does not change how
// it runs.
func newerBinary(t *testing.T, n int) string {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(t.TempDir(), "bijou")
	// No child may inherit the file while it is written.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(to, from)
	}
	if err == nil {
		_, err = to.WriteString("newer " + strconv.Itoa(n))
	}
	if err != nil || to.Close() != nil {
		t.Fatal(err)
	}
	return path
}
