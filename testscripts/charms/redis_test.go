package charms_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/testscripts/kit/await"
	"bijou/testscripts/kit/need"
)

// newRedis returns a play with real servers, which stop when the test ends, even if it fails.
func newRedis(t *testing.T) *play {
	t.Helper()
	for _, name := range []string{"redis-server", "redis-cli"} {
		if _, err := exec.LookPath(name); err != nil {
			need.Skip(t, "redis-server", "no redis-server here (apt-get install redis-server)")
		}
	}
	p := newPlay(t)
	p.configure("redis", map[string]any{"base-port": 0})
	t.Cleanup(func() {
		for unit, dir := range p.units {
			if filepath.Base(dir) == "redis" {
				p.run(unit, "stop")
			}
		}
	})
	return p
}

// cli sends a command to a unit's server and returns the answer.
func (p *play) cli(unit string, args ...string) string {
	p.t.Helper()
	home := filepath.Join(p.unitDir(unit), "redis")
	port, err := os.ReadFile(filepath.Join(home, "port"))
	p.check(err)
	password, err := os.ReadFile(filepath.Join(home, "password"))
	p.check(err)
	cmd := exec.Command("redis-cli", append([]string{"-p", strings.TrimSpace(string(port))}, args...)...)
	cmd.Env = append(os.Environ(), "REDISCLI_AUTH="+string(password))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// role returns the server's own view of its role: "master", or the primary and the state of the
// replication.
func (p *play) role(unit string) string {
	p.t.Helper()
	values := map[string]string{}
	lines := bufio.NewScanner(strings.NewReader(p.cli(unit, "info", "replication")))
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		values[key] = value
	}
	if values["role"] == "slave" {
		return "replica of " + values["master_port"] + " " + values["master_link_status"]
	}
	return values["role"]
}

// eventually waits until get returns want.
func (p *play) eventually(want string, get func() string) {
	p.t.Helper()
	await.Until(p.t, await.Poll{Limit: time.Minute, Pause: 20 * time.Millisecond}, want, func() string {
		got := get()
		return await.Unless(got == want, "it is %q", got)
	})
}

func (p *play) port(unit string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.unitDir(unit), "redis", "port"))
	p.check(err)
	return strings.TrimSpace(string(data))
}

// replicates writes data to check that primary is the primary and that the others are its replicas.
func (p *play) replicates(primary string, replicas ...string) {
	p.t.Helper()
	p.eventually("master", func() string { return p.role(primary) })
	for _, unit := range replicas {
		p.eventually("replica of "+p.port(primary)+" up", func() string { return p.role(unit) })
	}
	value := fmt.Sprint(time.Now().UnixNano())
	if got := p.cli(primary, "set", "k", value); got != "OK" {
		p.t.Fatalf("set on %s: %s", primary, got)
	}
	for _, unit := range replicas {
		p.eventually(value, func() string { return p.cli(unit, "get", "k") })
	}
}

func TestRedisElectsAndReplicates(t *testing.T) {
	need.Whole(t)
	p := newRedis(t)
	// The unit with the lowest number does not join first.
	for _, unit := range []string{"redis/1", "redis/0", "redis/2"} {
		p.deploy(unit, "redis")
		p.enter(unit, "cluster:0")
		p.enter(unit, "db:1")
	}
	p.replicates("redis/0", "redis/1", "redis/2")

	p.deploy("redis-client/0", "redis-client")
	p.enter("redis-client/0", "db:1")
	if got := lastLine(t, p, "redis-client/0"); got != "redis/0 "+p.port("redis/0")+" ok" {
		t.Errorf("the client wrote to %q", got)
	}

	p.deploy("redis/3", "redis")
	p.enter("redis/3", "cluster:0")
	p.enter("redis/3", "db:1")
	p.replicates("redis/0", "redis/1", "redis/2", "redis/3")

	p.leave("redis/0")
	p.replicates("redis/1", "redis/2", "redis/3")
	if got := lastLine(t, p, "redis-client/0"); got != "redis/1 "+p.port("redis/1")+" ok" {
		t.Errorf("after the primary has gone the client wrote to %q", got)
	}
	if got := p.world().Status["redis/2"]; got != "active replica of redis/1" {
		t.Errorf("status of redis/2: %q", got)
	}
}

// lastLine returns the last line of the client's log.
func lastLine(t *testing.T, p *play, unit string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.unitDir(unit), "redis.log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return lines[len(lines)-1]
}

func TestRedisHooksMayRunAgain(t *testing.T) {
	need.Whole(t)
	p := newRedis(t)
	for _, unit := range []string{"redis/0", "redis/1"} {
		p.deploy(unit, "redis")
		p.enter(unit, "cluster:0")
	}
	before := p.world()
	pid := p.cli("redis/1", "info", "server")
	for _, hook := range []string{"install", "config-changed", "start"} {
		p.run("redis/0", hook)
		p.run("redis/1", hook)
	}
	for _, kind := range []string{"joined", "changed"} {
		p.runIn("redis/1", "cluster:0", kind, "redis/0")
	}
	if diff := cmp.Diff(before, p.world()); diff != "" {
		t.Errorf("running hooks again changed something (-before +after):\n%s", diff)
	}
	if a, b := processID(pid), processID(p.cli("redis/1", "info", "server")); a != b || a == "" {
		t.Errorf("redis/1 was started again: %q became %q", a, b)
	}
	p.replicates("redis/0", "redis/1")

	p.run("redis/1", "stop")
	p.run("redis/1", "stop")
	p.run("redis/1", "start")
	p.replicates("redis/0", "redis/1")
	p.run("redis/0", "upgrade-charm")
	p.replicates("redis/0", "redis/1")
}

func processID(info string) string {
	_, rest, _ := strings.Cut(info, "process_id:")
	id, _, _ := strings.Cut(rest, "\r")
	return id
}

func TestRedisChangesItsPort(t *testing.T) {
	need.Whole(t)
	p := newRedis(t)
	for _, unit := range []string{"redis/0", "redis/1"} {
		p.deploy(unit, "redis")
		p.enter(unit, "cluster:0")
	}
	p.cli("redis/0", "set", "kept", "yes")
	base := 0
	if _, err := fmt.Sscan(p.port("redis/0"), &base); err != nil {
		t.Fatal(err)
	}
	p.configure("redis", map[string]any{"base-port": base + 1})
	for _, unit := range []string{"redis/0", "redis/1"} {
		p.run(unit, "config-changed")
	}
	p.settle()
	p.replicates("redis/0", "redis/1")
	if got, want := p.port("redis/0"), fmt.Sprint(base+1); got != want {
		t.Errorf("redis/0 listens on %s, want %s", got, want)
	}
	if got := p.cli("redis/1", "get", "kept"); got != "yes" {
		t.Errorf("the data did not outlive the change: %q", got)
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("%d/tcp", base+1)}, p.world().Ports["redis/0"]); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}

func TestRedisTakesAnotherPortIfItsOwnIsTaken(t *testing.T) {
	need.Whole(t)
	p := newRedis(t)
	p.deploy("redis/0", "redis")
	taken := p.port("redis/0")
	p.deploy("redis/1", "redis")
	p.run("redis/1", "stop")
	p.check(os.WriteFile(filepath.Join(p.unitDir("redis/1"), "redis", "port"), []byte(taken+"\n"), 0o600))
	p.run("redis/1", "start")
	if got := p.port("redis/1"); got == taken {
		t.Errorf("redis/1 believes to listen on port %s, which is that of redis/0", got)
	}
	if got := p.cli("redis/1", "ping"); got != "PONG" {
		t.Errorf("redis/1 says %q", got)
	}
}
