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
// hierarchy for each controller. The argument name is the name of the environment's groups. It creates no
// groups.
func newCgroupManager(name string) *cgroupManager {
	// Only version 2 has this file at this path.
	if _, err := os.Stat(groupRoot + "/cgroup.procs"); err == nil {
		group := filepath.Join(groupRoot, name)
		return &cgroupManager{
			folders: []string{group},
			mem:     &limiter{folder: group},
			cpu:     &limiter{folder: group},
		}
	}

	m := &cgroupManager{}
	// A container's systemd can use these hierarchies. The controllers of memory and processors have their own.
	for _, hierarchy := range []string{"systemd", "unified"} {
		if _, err := os.Stat(filepath.Join(groupRoot, hierarchy, "cgroup.procs")); err == nil {
			m.folders = append(m.folders, filepath.Join(groupRoot, hierarchy, name))
		}
	}

	m.mem = newLimiterV1(name, "memory", "memory.limit_in_bytes")
	m.cpu = newLimiterV1(name, "cpu", "cgroup.procs")
	return m
}

// newLimiterV1 returns the limiter for a controller of version 1. It returns nil if the controller's
// hierarchy does not have the file, and so cannot limit containers.
func newLimiterV1(name, controller, file string) *limiter {
	if _, err := os.Stat(filepath.Join(groupRoot, controller, file)); err != nil {
		return nil
	}
	return &limiter{folder: filepath.Join(groupRoot, controller, name), v1: true}
}

// start starts a container in its own control groups, with its limits. The result unlimited lists the limits
// that the kernel does not enforce.
func (m *cgroupManager) start(ctx context.Context, id string, c command) (unlimited []string, err error) {
	if len(m.folders) == 0 {
		return nil, errors.New("this host has no control groups that systemd can use: mount them at " +
			groupRoot)
	}

	var groups []string
	for _, f := range m.folders {
		dir := filepath.Join(f, id)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("cannot create a control group: %w", err)
		}
		groups = append(groups, dir)
	}

	extraGroups, unlimited := m.setLimits(id, c.limits)
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	// The shell enters all groups, and then starts the container in them.
	shell := exec.CommandContext(ctx, "/bin/sh", slices.Concat([]string{"-c", bootScript, "boot.sh"}, groups,
		extraGroups, []string{"--"}, c.args)...)
	shell.Dir = "/"

	// A container inherits no variable from this process's environment.
	shell.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"}
	shell.Stdout = log
	shell.Stderr = log
	// The script closes the lock once other processes can find the container in its groups.
	shell.ExtraFiles = []*os.File{c.lock}
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// The shell exits, and the container continues.
	if err := shell.Run(); err != nil {
		return nil, fmt.Errorf("cannot start the container: %w", err)
	}

	return unlimited, nil
}

// isRunning reports whether the container's control groups contain any process.
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
			members, err := readProcesses(group)
			if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
				// The group was removed in the meantime, so it has no processes.
				err = nil
			}
			if err != nil {
				return nil, err
			}
			pids = append(pids, members...)
		}
	}

	return pids, nil
}

// listGroups lists a group and all groups below it. Each group comes before the groups below it. It returns
// none if the group does not exist.
func listGroups(dir string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			// The group was removed in the meantime, or never existed.
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

// readProcesses returns the PIDs of the processes in one control group, even if it also returns an error. It
// skips processes outside this process's PID namespace, which the kernel lists as 0.
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

// kill kills all processes of a container, and removes its control groups. It repeats both until the groups
// are removed. It returns an error if ctx is done first, or if it cannot list the processes.
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
		// A failed removal is repeated, since it fails while a group still has a process.
		if len(pids) == 0 && m.removeGroups(id) == nil {
			return nil
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return fmt.Errorf("cannot end the container: processes %v are still running: %w", pids, err)
		}
	}
}

// removeGroups removes the container's control groups in all hierarchies. If id is "", it removes the
// environment's groups.
func (m *cgroupManager) removeGroups(id string) error {
	folders := slices.Clone(m.folders)
	// The limiters of version 2 use the group in m.folders.
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

// close removes the environment's control groups.
func (m *cgroupManager) close() error { return m.removeGroups("") }

// removeGroup removes a control group and all groups below it.
func removeGroup(dir string) error {
	found, err := listGroups(dir)
	if err != nil {
		return err
	}

	// A group can be removed only after the groups below it.
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

// setLimits sets the container's limits on memory and processors. It does not set a limit of 0. The result
// extraGroups lists the groups of version 1 that the container must enter in addition to the manager's own.
// The result unlimited lists the limits that cannot be enforced, as constraints such as "mem=512M".
func (m *cgroupManager) setLimits(id string, asked constraints.Hardware) (extraGroups, unlimited []string) {
	for _, limit := range []struct {
		constraint string
		amount     uint64
		limiter    *limiter
		set        func(dir string, amount uint64, v1 bool) error
	}{
		{fmt.Sprintf("mem=%dM", asked.Mem), asked.Mem, m.mem, limitMemory},
		{fmt.Sprintf("cpu-cores=%d", asked.CPUCores), asked.CPUCores, m.cpu, limitCores},
	} {
		if limit.amount == 0 {
			continue
		}
		if limit.limiter == nil || limit.limiter.enableControllers() != nil {
			unlimited = append(unlimited, limit.constraint)
			continue
		}

		v1 := limit.limiter.v1
		dir := filepath.Join(limit.limiter.folder, id)
		// A limit that the kernel does not accept is only reported to the operator.
		isMade := os.MkdirAll(dir, 0o755) == nil
		enforced := isMade && limit.set(dir, limit.amount, v1) == nil
		if !enforced {
			unlimited = append(unlimited, limit.constraint)
		}
		if v1 && isMade {
			extraGroups = append(extraGroups, dir)
		}
	}

	return extraGroups, unlimited
}

// enableControllers creates the limiter's directory. For version 2 it also tries to enable the controllers of
// memory and processors for the groups in that directory. It returns an error only if it cannot create the
// directory.
func (l *limiter) enableControllers() error {
	if err := os.MkdirAll(l.folder, 0o755); err != nil {
		return err
	}
	if l.v1 {
		return nil
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

// limitMemory limits the memory of a control group to mib MiB. The argument v1 is set for control groups of
// version 1.
func limitMemory(dir string, mib uint64, v1 bool) error {
	file := "memory.max"
	if v1 {
		file = "memory.limit_in_bytes"
	}
	return writeLimit(dir, file, strconv.FormatUint(mib<<20, 10))
}

// limitCores limits the processor time of a control group to that of a number of cores. The kernel counts the
// time in periods. The argument v1 is set for control groups of version 1.
func limitCores(dir string, cores uint64, v1 bool) error {
	const period = 100_000 // microseconds
	if !v1 {
		return writeLimit(dir, "cpu.max", fmt.Sprintf("%d %d", cores*period, period))
	}
	if err := writeLimit(dir, "cpu.cfs_period_us", strconv.Itoa(period)); err != nil {
		return err
	}

	return writeLimit(dir, "cpu.cfs_quota_us", strconv.FormatUint(cores*period, 10))
}

// writeLimit writes text to a file of a control group. It returns an error if the file does not exist, since
// only the kernel can create such files.
func writeLimit(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
