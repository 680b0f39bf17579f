package provider

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"bijou/state/constraints"
)

// ThisHost returns the hardware of this host, for a provider whose machines run on this host. RootDisk is the
// size of the file system that contains dir, and free is that file system's free space, both in MiB. The CPU
// power is unknown, and counts as enough for any constraint.
func ThisHost(dir string) (h constraints.Hardware, free uint64, err error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return h, 0, fmt.Errorf("cannot look for free space in %q: %w", dir, err)
	}

	block := uint64(disk.Bsize)
	h = constraints.Hardware{
		Arch:     constraints.HostArch(),
		CPUCores: uint64(runtime.NumCPU()),
		CPUPower: math.MaxUint64,
		RootDisk: disk.Blocks * block >> 20,
	}
	h.Mem, err = totalMemory()
	return h, disk.Bavail * block >> 20, err
}

// CheckFit returns an error if a host with hardware h does not meet the machine's constraints, or if the
// operator has named a place for the machine. It is for providers whose machines are all on this host.
func CheckFit(h constraints.Hardware, spec Spec) error {
	if spec.Placement != "" {
		return fmt.Errorf("cannot place a machine at %q: this provider creates machines only on this host",
			spec.Placement)
	}
	if unmet := spec.Constraints.Unmet(h); len(unmet) > 0 {
		return fmt.Errorf("this host cannot satisfy %s: it has architecture %s, %d cores, %dM of memory, %dM of disk, no tags and no instance types; to retry with different constraints: juju resolved %s --constraints \"K=V ...\"",
			strings.Join(unmet, " "), h.Arch, h.CPUCores, h.Mem, h.RootDisk, spec.Machine)
	}

	return nil
}

// totalMemory returns this host's memory in MiB.
func totalMemory() (uint64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()

	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 1 && fields[0] == "MemTotal:" {
			kib, err := strconv.ParseUint(fields[1], 10, 64)
			return kib >> 10, err
		}
	}

	return 0, errors.New("cannot find out how much memory this host has")
}

// SeriesOf returns the series of the system below root according to its os-release(5). The series is the code
// name or, if there is none, the ID and version, such as "fedora40". SeriesOf returns an error if it finds
// neither a code name nor an ID.
func SeriesOf(root string) (string, error) {
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			continue
		}

		release := map[string]string{}
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			release[name] = strings.Trim(value, `"'`)
		}

		if name := release["VERSION_CODENAME"]; name != "" {
			return name, nil
		}
		if release["ID"] != "" {
			return release["ID"] + release["VERSION_ID"], nil
		}
	}

	return "", fmt.Errorf(
		"cannot find out the series of the system in %q: its os-release has neither VERSION_CODENAME nor ID",
		root,
	)
}
