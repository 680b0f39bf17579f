package nspawn

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"bijou/state/backoff"
	"bijou/state/constraints"
)

// groupRoot is where the kernel's control groups are.
const groupRoot = "/sys/fs/cgroup"

// cgroupManager is the manager on a host whose first process is not systemd: a control group a
// container, in every hierarchy that is of use.
type cgroupManager struct {
	// folders is the environment's group in each of systemd's hierarchies, the one
	// that lists all processes first.
	folders []string
	mem     *limiter // nil: there is none
	cpu     *limiter
}

// newCgroupManager returns the manager of this host's control groups, of version 2, or of version 1 with a
// hierarchy for each controller.
func newCgroupManager(name string) *cgroupManager {
	if _, err := os.Stat(groupRoot + "/cgroup.procs"); err == nil { // version 2 alone
		one := filepath.Join(groupRoot, name)
		return &cgroupManager{folders: []string{one}, mem: &limiter{folder: one}, cpu: &limiter{folder: one}}
	}

	g := &cgroupManager{}
	for _, hierarchy := range []string{"systemd", "unified"} {
		if _, err := os.Stat(filepath.Join(groupRoot, hierarchy, "cgroup.procs")); err == nil {
			g.folders = append(g.folders, filepath.Join(groupRoot, hierarchy, name))
		}
	}

	old := func(controller, file string) *limiter {
		if _, err := os.Stat(filepath.Join(groupRoot, controller, file)); err != nil {
			return nil
		}
		return &limiter{folder: filepath.Join(groupRoot, controller, name), v1: true}
	}

	g.mem = old("memory", "memory.limit_in_bytes")
	g.cpu = old("cpu", "cgroup.procs")
	return g
}

// start starts a container in control groups of its own, with its limits. unlimited lists the limits that
// the kernel does not enforce.
func (m *cgroupManager) start(ctx context.Context, id string, c command) (unlimited []string, err error) {
	if len(m.folders) == 0 {
		return nil, errors.New("this host has no control groups that systemd could use: mount them at " +
			groupRoot)
	}

	var in []string
	for _, f := range m.folders {
		dir := filepath.Join(f, id)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("cannot make a control group: %w", err)
		}
		in = append(in, dir)
	}

	limiting, unlimited := m.setLimits(id, c.limits)
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	shell := exec.CommandContext(ctx, "/bin/sh", slices.Concat([]string{"-c", bootScript, "boot.sh"}, in,
		limiting, []string{"--"}, c.args)...)
	shell.Dir = "/"

	// A container gets nothing of this process's environment.
	shell.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	shell.Stdout = log
	shell.Stderr = log
	shell.ExtraFiles = []*os.File{c.lock}
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := shell.Run(); err != nil { // it leaves the container behind
		return nil, fmt.Errorf("cannot start the container: %w", err)
	}

	return unlimited, nil
}

func (m *cgroupManager) isRunning(id string) (bool, error) {
	pids, err := m.listProcesses(id)
	return len(pids) > 0, err
}

// listProcesses returns the pids of all processes in the container's control groups.
func (m *cgroupManager) listProcesses(id string) (pids []int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot list the container's processes: %w", err)
		}
	}()

	for _, f := range m.folders {
		groups, err := listGroups(filepath.Join(f, id))
		if err != nil {
			return nil, err
		}

		for _, group := range groups {
			in, err := readProcesses(group)
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) {
				return nil, err
			}
			pids = append(pids, in...) // a group that went meanwhile has none
		}
	}

	return pids, nil
}

// listGroups lists a group and all groups below it, each before those below it.
func listGroups(dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			found = append(found, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}

		return err
	})

	return found, err
}

// readProcesses returns the pids of the processes in one control group. It skips processes outside this
// one's pid namespace, which the kernel lists as 0.
func readProcesses(group string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	var pids []int
	for _, word := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}

	return pids, err
}

// kill kills all processes of a container, and removes its cgroups.
func (m *cgroupManager) kill(ctx context.Context, id string) error {
	for {
		pids, err := m.listProcesses(id)
		if err != nil {
			return err
		}

		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one that has ended is what is wanted
		}
		if len(pids) == 0 && m.removeGroups(id) == nil {
			return nil
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return fmt.Errorf("cannot end the container: processes %v are left: %w", pids, err)
		}
	}
}

// removeGroups removes the container's control groups in all hierarchies.
func (m *cgroupManager) removeGroups(id string) error {
	folders := slices.Clone(m.folders)
	for _, l := range []*limiter{m.mem, m.cpu} {
		if l != nil && l.v1 {
			folders = append(folders, l.folder)
		}
	}

	var errs []error
	for _, f := range folders {
		errs = append(errs, removeGroup(filepath.Join(f, id)))
	}
	return errors.Join(errs...)
}

func (m *cgroupManager) close() error { return m.removeGroups("") }

// removeGroup removes a control group and those below it.
func removeGroup(dir string) error {
	found, err := listGroups(dir)
	if err != nil {
		return err
	}

	for _, path := range slices.Backward(found) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove a control group: %w", err)
		}
	}

	return nil
}

// limiter is a hierarchy with a controller.
type limiter struct {
	folder string // the environment's group
	v1     bool   // of version 1, a hierarchy of its own
}

// setLimits sets the container's limits of memory and processors. in lists the control groups that the
// container must enter, unlimited the limits that the kernel refused.
func (m *cgroupManager) setLimits(id string, asked constraints.Hardware) (in, unlimited []string) {
	for _, part := range []struct {
		what   string
		amount uint64
		by     *limiter
		set    func(dir string, amount uint64, old bool) error
	}{
		{what: fmt.Sprintf("mem=%dM", asked.Mem), amount: asked.Mem, by: m.mem, set: limitMemory},
		{what: fmt.Sprintf("cpu-cores=%d", asked.CPUCores), amount: asked.CPUCores, by: m.cpu, set: limitCores},
	} {
		if part.amount == 0 {
			continue
		}
		if part.by == nil || part.by.enableControllers() != nil {
			unlimited = append(unlimited, part.what)
			continue
		}

		dir := filepath.Join(part.by.folder, id)
		if os.MkdirAll(dir, 0o755) != nil || part.set(dir, part.amount, part.by.v1) != nil {
			unlimited = append(unlimited, part.what)
		}
		if part.by.v1 {
			in = append(in, dir)
		}
	}

	return in, unlimited
}

// enableControllers makes the limiter's directory, and enables the controllers of memory and processors for
// the groups in it.
func (l *limiter) enableControllers() error {
	if err := os.MkdirAll(l.folder, 0o755); err != nil || l.v1 {
		return err
	}

	for _, dir := range []string{groupRoot, l.folder} {
		for _, controller := range []string{"+memory", "+cpu"} {
			// Without the one the other may still be had: the limit's own file tells.
			_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte(controller), 0)
		}
	}

	return nil
}

func limitMemory(dir string, mb uint64, old bool) error {
	file := "memory.max"
	if old {
		file = "memory.limit_in_bytes"
	}
	return writeLimit(dir, file, strconv.FormatUint(mb<<20, 10))
}

// limitCores limits a control group to a number of processors. old says that it is of cgroups v1.
func limitCores(dir string, cores uint64, old bool) error {
	const period = 100_000 // microseconds
	if !old {
		return writeLimit(dir, "cpu.max", fmt.Sprintf("%d %d", cores*period, period))
	}
	if err := writeLimit(dir, "cpu.cfs_period_us", strconv.Itoa(period)); err != nil {
		return err
	}

	return writeLimit(dir, "cpu.cfs_quota_us", strconv.FormatUint(cores*period, 10))
}

// writeLimit writes to a file of a control group. It makes no file, since the kernel has made it.
func writeLimit(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
