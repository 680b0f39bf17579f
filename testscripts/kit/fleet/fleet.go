package fleet

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

//go:embed world.sh
var worldScript string

// Fleet is a number of hosts on their own network. Its methods belong to the test's goroutine. A host's
// methods can run in parallel with those of other hosts.
type Fleet struct {
	dir    string   // contains all files of the fleet
	tree   string   // the tree of files from which hosts boot
	groups []string // the parents of the hosts' control groups
	world  int      // process id of the world's first process
	alive  io.Closer
	keeper *exec.Cmd // the process that cleans up after the world
	hosts  []*Host
}

// New returns a fleet of the given number of booted hosts: host-0 at 10.77.0.10, and so on. It ends with the
// test. The machine must meet the conditions of Need.
func New(t testing.TB, hosts int) *Fleet {
	t.Helper()
	f, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.close(); err != nil {
			t.Error(err)
		}
	})
	for i := range hosts {
		f.hosts = append(f.hosts, &Host{Name: "h" + strconv.Itoa(i), Address: fmt.Sprintf("10.77.0.%d", 10+i), fleet: f})
	}
	for _, h := range f.hosts {
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// Host returns host i, counted from 0.
func (f *Fleet) Host(i int) *Host { return f.hosts[i] }

// Hosts returns all hosts.
func (f *Fleet) Hosts() []*Host { return f.hosts }

// open creates the fleet's namespaces and starts their first process.
func open() (*Fleet, error) {
	base, err := Tree()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/var/tmp", "bijou-fleet-")
	if err != nil {
		return nil, fmt.Errorf("cannot create the fleet's directory: %w", err)
	}
	f := &Fleet{dir: dir, tree: base, groups: controlGroups(filepath.Base(dir))}
	if err := f.begin(); err != nil {
		return nil, fmt.Errorf("cannot create the fleet's world: %w", err)
	}
	return f, nil
}

// controlGroups returns the paths of a new group in the hierarchies that systemd uses.
func controlGroups(name string) (groups []string) {
	const root = "/sys/fs/cgroup"
	// The host uses only version 2 of control groups.
	if _, err := os.Stat(root + "/cgroup.procs"); err == nil {
		return []string{filepath.Join(root, name)}
	}
	for _, hierarchy := range []string{"systemd", "unified"} {
		if _, err := os.Stat(filepath.Join(root, hierarchy, "cgroup.procs")); err == nil {
			groups = append(groups, filepath.Join(root, hierarchy, name))
		}
	}
	return groups
}

// begin starts the world's keeper in its own session, because it must outlive a test that is killed by
// its terminal.
func (f *Fleet) begin() error {
	f.keeper = exec.Command("bash", append([]string{"-c", worldScript, "world.sh", f.dir}, f.groups...)...)
	f.keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	f.keeper.Stderr = os.Stderr
	in, err := f.keeper.StdinPipe()
	if err != nil {
		return err
	}
	out, err := f.keeper.StdoutPipe()
	if err != nil {
		return err
	}
	if err := f.keeper.Start(); err != nil {
		return err
	}
	f.alive = in
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		_ = in.Close()
		return fmt.Errorf("it is not ready: %v; %v", err, f.keeper.Wait())
	}
	// The world's first process is the grandchild of unshare.
	f.world, err = descendant(f.keeper.Process.Pid, 2)
	return err
}

// close ends the world and all processes in it, and waits until it is gone.
func (f *Fleet) close() error {
	_ = f.alive.Close()
	err := f.keeper.Wait()
	for _, h := range f.hosts {
		if h.ended != nil {
			<-h.ended
		}
	}
	if err != nil {
		return fmt.Errorf("cannot clean up after the fleet: %w", err)
	}
	return nil
}

// within returns a command inside the world.
func (f *Fleet) within(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"-t", strconv.Itoa(f.world), "-m", "-n", "-p", "--"}, args...)...)
}
