package nspawn

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"bijou/provision/provider"
	"bijou/state/constraints"
)

// least is the space that a machine needs to boot and to keep its logs, in MB.
const least = 100

// facts are what this host has.
type facts struct {
	arch  string
	cores uint64
	mem   uint64 // MB
	free  uint64 // MB, where machines' files are
}

// Host says which series machines can have here, with these settings: that of the tree
// that they are given, or the host's own. It refuses a host that cannot have
// containers as it is, with what to do.
func Host(config map[string]string) (series string, err error) {
	if err := checkHost(); err != nil {
		return "", err
	}
	return provider.SeriesOf(cmp.Or(config["tree"], "/"))
}

func checkHost() error {
	if os.Geteuid() != 0 {
		return errors.New("containers need root: call it by sudo")
	}
	for _, program := range []string{"systemd-nspawn", "unshare", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("this host has no %s: apt-get install systemd-container iproute2 util-linux", program)
		}
	}
	return nil
}

// check refuses what this host cannot do, before anything is made.
func (p *Provider) check(spec provider.Spec) error {
	if err := checkHost(); err != nil {
		return err
	}
	return p.judge(spec)
}

// judge refuses a machine that does not fit. One that has a record did fit, and is
// not judged again: it has since used the space that was free.
func (p *Provider) judge(spec provider.Spec) error {
	if _, err := readRecord(filepath.Join(p.dir, p.idOf(spec.Machine))); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := p.facts()
	if err != nil {
		return err
	}
	return f.fit(spec)
}

// facts finds out what this host has.
func (p *Provider) facts() (facts, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(p.env.Dir, &disk); err != nil {
		return facts{}, fmt.Errorf("cannot look for free space in %q: %w", p.env.Dir, err)
	}
	mem, err := memory()
	return facts{
		arch: archOf(runtime.GOARCH), cores: uint64(runtime.NumCPU()), mem: mem,
		free: disk.Bavail * uint64(disk.Bsize) >> 20,
	}, err
}

// archOf is the constraint's name of an architecture that Go names.
func archOf(goarch string) string {
	names := map[string]string{"386": "i386", "arm": "armhf", "ppc64le": "ppc64el"}
	if name, ok := names[goarch]; ok {
		return name
	}
	return goarch
}

// memory is what this host has of it, in MB.
func memory() (uint64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == "MemTotal:" {
			kib, err := strconv.ParseUint(fields[1], 10, 64)
			return kib >> 10, err
		}
	}
	return 0, errors.New("cannot find out how much memory this host has")
}

// fit refuses a machine that would not be what was asked for. What is asked as a
// least is also the most that it gets, and cpu-power is not compared at all.
func (f facts) fit(spec provider.Spec) error {
	if spec.Placement != "" {
		return fmt.Errorf("machines are containers of this host, and go to no other place, as %q: leave that out", spec.Placement)
	}
	unmet := spec.Constraints.Unmet(constraints.Hardware{
		Arch: f.arch, Container: Name, CPUCores: f.cores, CPUPower: math.MaxUint64, Mem: f.mem, RootDisk: f.free,
	})
	if len(unmet) > 0 {
		return fmt.Errorf("this host cannot satisfy %s: it is %s, with %d cores, %dM of memory, %dM free on the disk, and has no tags and no instance types: ask for less, by juju resolved %s --constraints",
			strings.Join(unmet, " "), f.arch, f.cores, f.mem, f.free, spec.Machine)
	}
	if f.free < least {
		return fmt.Errorf("%d MB are free for the machine's files, and %d are needed: %w", f.free, least, syscall.ENOSPC)
	}
	return nil
}

// limits are what a container may use at most; 0 is all.
type limits struct {
	mem   uint64 // MB
	cores uint64
}

func limitsOf(c constraints.Value) limits {
	return limits{mem: c.Hardware().Mem, cores: c.Hardware().CPUCores}
}
