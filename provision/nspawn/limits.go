package nspawn

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// limiter is a hierarchy with a controller.
type limiter struct {
	folder string // the environment's group
	v1     bool   // of version 1, a hierarchy of its own
}

// in are the groups that the container must enter, unlimited the limits that the kernel refused.
func (m *cgroupManager) setLimits(id string, l limits) (in, unlimited []string) {
	for _, part := range []struct {
		what   string
		amount uint64
		by     *limiter
		set    func(dir string, old bool) error
	}{
		{fmt.Sprintf("mem=%dM", l.mem), l.mem, m.mem, func(dir string, old bool) error { return limitMemory(dir, l.mem, old) }},
		{fmt.Sprintf("cpu-cores=%d", l.cores), l.cores, m.cpu, func(dir string, old bool) error { return limitCores(dir, l.cores, old) }},
	} {
		if part.amount == 0 {
			continue
		}
		if part.by == nil || part.by.enableControllers() != nil {
			unlimited = append(unlimited, part.what)
			continue
		}
		dir := filepath.Join(part.by.folder, id)
		if os.MkdirAll(dir, 0o755) != nil || part.set(dir, part.by.v1) != nil {
			unlimited = append(unlimited, part.what)
		}
		if part.by.v1 {
			in = append(in, dir)
		}
	}
	return in, unlimited
}

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

// The kernel has made the file; no other is made.
func writeLimit(dir, file, text string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
