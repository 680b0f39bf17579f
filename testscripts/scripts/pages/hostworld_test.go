package pages

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/await"
)

// hostWorld makes follow run its commands as root in new namespaces, in the script's current directory,
// with the test's etcd in PATH.
func hostWorld(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: hostworld")
	}
	startWorld(ts)

	etcd, err := etcdtest.Binary()
	ts.Check(err)
	ts.Check(os.Mkdir(ts.MkAbs("programs"), 0o755))
	ts.Check(os.Symlink(etcd, ts.MkAbs("programs/etcd")))
	ts.Setenv("PATH", ts.MkAbs("programs")+":"+ts.Getenv("PATH"))
}

// worldScript is the first process of the world. It reaps processes that nobody else waits for.
const worldScript = `mkdir -p /run/netns
mount -t tmpfs tmpfs /run/netns
>"$1"
sleep infinity &
wait`

// startWorld starts a process that keeps the namespaces until the script ends, and sets FOLLOW_IN to
// enter them.
func startWorld(ts *testscript.TestScript) {
	ready := ts.MkAbs("world-is-ready")
	world := exec.Command("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", worldScript, "bash", ready)
	ts.Check(world.Start())
	ts.Defer(func() {
		_ = world.Process.Kill()
		_ = world.Wait()
	})

	await.Until(ts, await.Poll{Limit: time.Minute, Pause: 20 * time.Millisecond}, "the world is ready", func() string {
		_, err := os.Stat(ready)
		return await.Unless(err == nil, "%v", err)
	})
	pid := world.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	ts.Check(err)
	ts.Setenv("FOLLOW_IN", "nsenter -t "+strings.TrimSpace(string(children))+" -m -n -p -- env --chdir="+ts.MkAbs("."))
}
