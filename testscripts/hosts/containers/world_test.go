package containers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/hosts/versions"
	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/fleet"
	"bijou/testscripts/kit/need"
)

// limit is several times longer than the longest wait on an idle machine.
const limit = 6 * time.Minute

// world is one environment of the real binary.
type world struct {
	t      *testing.T
	bin    string // the folder of the binary and its links
	home   string // BIJOU_HOME
	series string // of the machines
	short  string // the prefix of all names that belong to the environment on this machine
	uuid   string // the environment's
}

// newWorld builds the binary and bootstraps an environment, which ends with the test.
func newWorld(t *testing.T, name string, args ...string) *world {
	need.Long(t)
	fleet.Need(t)
	tree, err := fleet.Tree()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, bin: filepath.Dir(versions.Current(t)), home: filepath.Join(t.TempDir(), "home")}
	w.series = w.sh(`. ` + tree + `/etc/os-release && echo $VERSION_CODENAME`)
	w.sh("bijou install --dir " + w.bin)
	t.Cleanup(func() { w.end(name) })
	w.sh(strings.Join(append([]string{"juju bootstrap --provider nspawn -e", name, "--config nspawn.tree=" + tree}, args...), " "))
	w.uuid = w.sh("juju get-environment uuid -e " + name)
	sum := sha256.Sum256([]byte(w.uuid + "\x00" + filepath.Join(w.home, name)))
	w.short = "bj" + hex.EncodeToString(sum[:3])
	return w
}

// end destroys the environment, if the test has not, and checks that it has left nothing on this
// machine.
func (w *world) end(name string) {
	if w.t.Failed() {
		out, _ := w.command("juju status --format yaml; tail -n 50 " + w.home + "/" + name + "/machines/0/agent.log; juju debug-log | tail -n 40").CombinedOutput()
		w.t.Logf("%s", out)
	}
	if _, err := os.Stat(filepath.Join(w.home, name)); err == nil {
		w.sh("juju destroy-environment -y --force " + name)
	}
	// The kernel removes the links of a namespace shortly after the namespace.
	await.Until(w.t, await.Poll{Limit: time.Minute, Pause: 50 * time.Millisecond}, "nothing is left on this machine", w.traces)
}

// traces lists everything on this machine that belongs to the environment: files, processes (with their
// namespaces), mounts, links, control groups, sockets and units.
func (w *world) traces() string {
	return w.sh(fmt.Sprintf(`
		ls "$BIJOU_HOME" 2>/dev/null | grep -v '^current$'
		ps -eo stat,args | grep -e "$BIJOU_HOME" -e %[1]s | grep -v -e '^Z' -e grep -e 'bash -c'
		grep -e "$BIJOU_HOME" -e %[1]s /proc/self/mounts
		ip -o link | grep %[1]s
		ls -d /sys/fs/cgroup/%[1]s* /sys/fs/cgroup/*/%[1]s* /run/systemd/nspawn/*/%[1]s* /run/systemd/transient/bijou-%[1]s* 2>/dev/null
		ls -d /run/bijou/%[2]s* 2>/dev/null
		true`, w.short, w.uuid[:8]))
}

// command returns a command that runs in a shell with the binary on the PATH, as for a user.
func (w *world) command(line string) *exec.Cmd {
	c := exec.Command("bash", "-c", line)
	c.Dir = "../../.."
	c.Env = append(os.Environ(), "BIJOU_HOME="+w.home, "PATH="+w.bin+":"+os.Getenv("PATH"), "NO_COLOR=1", "JUJU_ENV=")
	return c
}

// sh runs a command that must succeed and returns its output.
func (w *world) sh(line string) string {
	w.t.Helper()
	c := w.command(line)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s%s", line, err, out, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// eventually repeats the command until its output matches, and returns the output.
func (w *world) eventually(line, want string) string {
	w.t.Helper()
	expression := regexp.MustCompile(want)
	var out []byte
	await.Until(w.t, await.Poll{Limit: limit, Pause: 100 * time.Millisecond}, line+" matches "+want, func() string {
		out, _ = w.command(line).CombinedOutput()
		return await.Unless(expression.Match(out), "it was\n%s", out)
	})
	return string(out)
}

// address returns the machine's address from the output of juju.
func (w *world) address(machine string) string {
	w.t.Helper()
	return w.sh(`juju machines | awk '$1 == "` + machine + `" { print $3 }'`)
}

// init returns the process id of the container's first process, on this machine.
func (w *world) init(machine string) string {
	w.t.Helper()
	return w.sh(w.findInit(machine))
}

// findInit returns the command that prints that id. An agent may be at work before the provisioner has
// recorded the container.
func (w *world) findInit(machine string) string {
	w.t.Helper()
	line := `juju machines | awk '$1 == "` + machine + `" && $4 ~ /-` + machine + `$/ { print $4 }'`
	id := strings.TrimSpace(w.eventually(line, `\S`))
	return `pgrep -P $(pgrep -f -- "^systemd-nspawn .*--machine=` + id + ` ")`
}

// inside runs a command as root in a machine's container.
func (w *world) inside(machine, line string) string {
	w.t.Helper()
	return w.sh(fmt.Sprintf("nsenter -t %s -a -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c %q", w.init(machine), line))
}
