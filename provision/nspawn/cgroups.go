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

// groupRoot is where the kernel's control groups are mounted.
const groupRoot = "/sys/fs/cgroup"

// cgroupManager is the manager on a host without systemd. It puts each container into a separate control
// group, in every usable hierarchy.
type cgroupManager struct {
	// folders are the environment's groups in systemd's hierarchies. The first one lists all processes.
	folders []string
	mem     *limiter // nil if memory cannot be limited
	cpu     *limiter // nil if processors cannot be limited
}

// newCgroupManager returns the manager for this host's control groups: version 2, or version 1 with a
// hierarchy for each controller.
func newCgroupManager(name string) *cgroupManager {
	// Only version 2 has this file at this path.
	if _, err := os.Stat(groupRoot + "/cgroup.procs"); err == nil {
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

// start starts a container in separate control groups, with its limits. unlimited lists the limits that the
// kernel does not enforce.
func (m *cgroupManager) start(ctx context.Context, id string, c command) (unlimited []string, err error) {
	if len(m.folders) == 0 {
		return nil, errors.New("this host has no control groups that systemd could use: mount them at " +
			groupRoot)
	}

	var in []string
	for _, f := range m.folders {
		dir := filepath.Join(f, id)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("cannot create a control group: %w", err)
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

	// A container inherits no variable from this process's environment.
	shell.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	shell.Stdout = log
	shell.Stderr = log
	shell.ExtraFiles = []*os.File{c.lock}
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// The shell exits, and the container continues.
	if err := shell.Run(); err != nil {
		return nil, fmt.Errorf("cannot start the container: %w", err)
	}

	return unlimited, nil
}

func (m *cgroupManager) isRunning(id string) (bool, error) {
	pids, err := m.listProcesses(id)
	return len(pids) > 0, err
}

// listProcesses returns the PIDs of all processes in the container's control groups.
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
			// A group that was removed in the meantime has no processes.
			pids = append(pids, in...)
		}
	}

	return pids, nil
}

// listGroups lists a group and all groups below it. Each group comes before the groups below it.
func listGroups(dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		// A group may be removed in the meantime.
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}

		if d.IsDir() {
			found = append(found, path)
		}
		return nil
	})

	return found, err
}

// readProcesses returns the PIDs of the processes in one control group. It skips processes outside this
// process's PID namespace, which the kernel lists as 0.
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

// kill kills all processes of a container, and removes its control groups.
func (m *cgroupManager) kill(ctx context.Context, id string) error {
	for {
		pids, err := m.listProcesses(id)
		if err != nil {
			return err
		}

		for _, pid := range pids {
			// An error is ignored, since the process may already have ended.
			_ = syscall.Kill(pid, syscall.SIGKILL)
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

// removeGroup removes a control group and all groups below it.
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

// limiter is a hierarchy of control groups with a controller.
type limiter struct {
	folder string // the environment's group
	v1     bool   // set for version 1, in which each controller has a separate hierarchy
}

// setLimits sets the container's limits on memory and processors. The result in lists the additional control
// groups that the container must enter. The result unlimited lists the limits that cannot be enforced.
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

// enableControllers creates the limiter's directory. For version 2 it also enables the controllers of
// memory and processors for the groups in that directory.
func (l *limiter) enableControllers() error {
	if err := os.MkdirAll(l.folder, 0o755); err != nil || l.v1 {
		return err
	}

	for _, dir := range []string{groupRoot, l.folder} {
		for _, controller := range []string{"+memory", "+cpu"} {
			// Each controller is enabled separately, since one of them may be unavailable. If a controller is
			// not enabled, the file of its limit does not exist.
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

// limitCores limits a control group to a number of processors. old is set for control groups of version 1.
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

// writeLimit writes to a file of a control group. It does not create the file, since the kernel creates
// these files.
func writeLimit(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
