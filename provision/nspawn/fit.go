package nspawn

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
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

// check refuses what this host cannot do, before anything is made.
func (p *Provider) check(spec provider.Spec) error {
	if os.Geteuid() != 0 {
		return errors.New("containers need root: run the environment's process as root, as by sudo juju bootstrap")
	}
	for _, program := range []string{"systemd-nspawn", "unshare", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("this host has no %s: apt-get install systemd-container iproute2 util-linux", program)
		}
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

// fit refuses a machine that would not be what was asked for.
func (f facts) fit(spec provider.Spec) error {
	c := spec.Constraints
	for _, refusal := range []struct {
		refused bool
		reason  string
	}{
		{spec.Placement != "", fmt.Sprintf("machines are containers of this host, and go to no other place, as to %q", spec.Placement)},
		{wants(c.Arch) && *c.Arch != f.arch, fmt.Sprintf("arch=%s: this host is %s", value(c.Arch), f.arch)},
		{wants(c.Container) && *c.Container != Name && *c.Container != "none", fmt.Sprintf("container=%s: machines are containers of systemd-nspawn", value(c.Container))},
		{wants(c.InstanceType), fmt.Sprintf("instance-type=%s: containers have no types; ask for mem and cpu-cores", value(c.InstanceType))},
		{wantsTag(c.Tags), fmt.Sprintf("tags=%s: this host has no tags", list(c.Tags))},
		{number(c.CPUCores) > f.cores, fmt.Sprintf("cpu-cores=%d: this host has %d", number(c.CPUCores), f.cores)},
		{number(c.Mem) > f.mem, fmt.Sprintf("mem=%dM: this host has %dM", number(c.Mem), f.mem)},
		{number(c.RootDisk) > f.free, fmt.Sprintf("root-disk=%dM: %dM are free here", number(c.RootDisk), f.free)},
	} {
		if refusal.refused {
			return errors.New(refusal.reason + ": change the machine's constraints")
		}
	}
	if f.free < least {
		return fmt.Errorf("%d MB are free for the machine's files, and %d are needed: %w", f.free, least, syscall.ENOSPC)
	}
	return nil
}

func wants(s *string) bool { return s != nil && *s != "" }

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func number(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func list(tags *[]string) string {
	if tags == nil {
		return ""
	}
	return strings.Join(*tags, ",")
}

// wantsTag: tags that are excluded are none that this host has.
func wantsTag(tags *[]string) bool {
	return tags != nil && slices.ContainsFunc(*tags, func(t string) bool { return t != "" && !strings.HasPrefix(t, "^") })
}

// limits are what a container may use at most; 0 is all.
type limits struct {
	mem   uint64 // MB
	cores uint64
}

func limitsOf(c constraints.Value) limits {
	return limits{mem: number(c.Mem), cores: number(c.CPUCores)}
}
