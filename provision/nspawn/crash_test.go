package nspawn

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bijou/provision/provider"
	"bijou/testscripts/kit/await"
)

// starter is the variable with the environment's directory, for a test binary that only starts machine
// 1.
const starter = "BIJOU_NSPAWN_STARTER"

func provideIn(t *testing.T, dir, tree string) *Provider {
	t.Helper()
	p, err := New(provider.Environment{UUID: dir, Name: "test", Dir: dir, Config: map[string]string{"tree": tree}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestKilledStarts kills processes at random moments while they start a machine. The next start must complete
// the work. There must never be a second container, and no trace of the machine may remain after Stop.
func TestKilledStarts(t *testing.T) {
	tree, series := testTree(t)
	spec := provider.Spec{Environment: "e", Machine: "1", Series: series, Token: "e-1"}
	if dir := os.Getenv(starter); dir != "" {
		_, _ = provideIn(t, dir, tree).Start(t.Context(), spec, io.Discard)
		select {} // waits to be killed
	}
	p := provideIn(t, t.TempDir(), tree)
	id := p.instanceID("1")
	t.Cleanup(func() {
		if err := p.Stop(context.Background(), id); err != nil {
			t.Error(err)
		}
		nothingLeft(t, p)
	})
	for _, delay := range []time.Duration{20, 40, 60, 80, 120, 200, 400} { // milliseconds
		child := exec.Command(os.Args[0], "-test.run=^TestKilledStarts$")
		child.Env = append(os.Environ(), starter+"="+p.env.Dir)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		await.Until(t, await.Poll{Limit: time.Minute, Pause: time.Millisecond}, "the start has begun", func() bool {
			_, err := os.Lstat(p.dir)
			return err == nil
		})
		// The kill happens here. The checks must hold for each moment.
		time.Sleep(delay * time.Millisecond)
		if err := errors.Join(child.Process.Signal(syscall.SIGKILL), ignored(child.Wait())); err != nil {
			t.Fatal(err)
		}
		i, err := p.Start(t.Context(), spec, io.Discard)
		if err != nil || !i.Running {
			t.Fatalf("after %d ms: %+v, %v", delay, i, err)
		}
		if n := containers(t, id); n != 1 {
			t.Fatalf("after %d ms there are %d containers", delay, n)
		}
		if err := p.Stop(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		nothingLeft(t, p)
	}
}

// ignored discards the error of a process that the test has killed.
func ignored(error) error { return nil }

// containers counts the running containers called id.
func containers(t *testing.T, id string) int {
	t.Helper()
	out, err := exec.Command("ps", "-eo", "stat,args").Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "Z") && strings.Contains(line, " systemd-nspawn ") && strings.Contains(line, "--machine="+id+" ") {
			n++
		}
	}
	return n
}

// nothingLeft checks that no trace of the environment remains on this host.
func nothingLeft(t *testing.T, p *Provider) {
	t.Helper()
	groups, _ := filepath.Glob(groupRoot + "/*/" + p.namePrefix)
	for _, path := range append(groups, p.dir, filepath.Join(groupRoot, p.namePrefix), "/sys/class/net/"+p.bridgeName()) {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), p.env.Dir) {
		t.Errorf("mounts are left: %v\n%s", err, mounts)
	}
}

// TestTwoEnvironments checks that the last Stop of one environment removes all its traces from this host. The
// machine of another environment must keep running and remain reachable.
func TestTwoEnvironments(t *testing.T) {
	tree, series := testTree(t)
	var all []*Provider
	var machines []provider.Instance
	for _, dir := range []string{t.TempDir(), t.TempDir()} {
		p := provideIn(t, dir, tree)
		i, err := p.Start(t.Context(), provider.Spec{Environment: dir, Machine: "1", Series: series, Token: dir}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Stop(context.Background(), i.ID); err != nil {
				t.Error(err)
			}
			nothingLeft(t, p)
		})
		all, machines = append(all, p), append(machines, i)
	}
	if err := all[0].Stop(t.Context(), machines[0].ID); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, all[0])
	reached(t, machines[1].Private)
	if left, err := all[1].Instances(t.Context()); err != nil || len(left) != 1 || !left[0].Running {
		t.Errorf("the other environment has %+v, %v", left, err)
	}
}

// reached connects to the address of a machine. The machine must refuse the connection, since nothing listens
// there.
func reached(t *testing.T, address string) {
	t.Helper()
	dialer := net.Dialer{Timeout: 30 * time.Second}
	c, err := dialer.DialContext(t.Context(), "tcp", net.JoinHostPort(address, "9"))
	if err == nil {
		c.Close()
	} else if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("this host does not reach %s: %v", address, err)
	}
}

// TestLinkThatLingers checks that the network link of a removed container does not block the next
// start, even if the name was too long for a link.
func TestLinkThatLingers(t *testing.T) {
	testTree(t) // skips the test without root, which it also needs
	p := newProvider(t, nil)
	for _, machine := range []string{"1", "123456789"} {
		link := p.namePrefix + "-l"
		for _, line := range []string{
			"ip link add " + link + " type veth peer name " + p.namePrefix + "-p",
			"ip link property add dev " + link + " altname vb-" + p.instanceID(machine),
		} {
			if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", line, err, out)
			}
		}
		for range 2 { // the second time there is no link
			if err := removeLink(t.Context(), p.instanceID(machine)); err != nil {
				t.Error(err)
			}
		}
		if _, err := os.Lstat("/sys/class/net/" + link); err == nil {
			t.Errorf("the link of machine %s is there", machine)
			_ = exec.Command("ip", "link", "delete", link).Run()
		}
	}
}
