package nspawn

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"bijou/provision/provider"
	"bijou/state/constraints"
)

// minFreeDisk is the space that a machine needs to boot and for its logs, in MiB.
const minFreeDisk = 100

// HostSeries returns the default series of machines on this host with the provider's settings in config: the
// series of the configured tree, or the host's own. It returns an error with advice if this host cannot run
// containers, or if the setting nspawn.storage is invalid. It also returns an error if it cannot find out the
// series.
func HostSeries(config map[string]string) (series string, err error) {
	if err := checkHost(); err != nil {
		return "", err
	}
	if _, err := storageFolders(config); err != nil {
		return "", err
	}

	return provider.SeriesOf(cmp.Or(config["tree"], "/"))
}

// storageFolders returns the directories on this host that machines can use for storage, from the setting
// nspawn.storage. It returns an error unless each of them is the absolute path of an existing directory.
func storageFolders(config map[string]string) ([]string, error) {
	folders := strings.FieldsFunc(config["storage"], isSeparator)
	for _, folder := range folders {
		if info, err := os.Stat(folder); !filepath.IsAbs(folder) || err != nil || !info.IsDir() {
			return nil, fmt.Errorf(
				"nspawn.storage has %q: want directories of this host, such as /mnt/disk1,/mnt/disk2",
				folder,
			)
		}
	}

	return folders, nil
}

// checkHost returns an error if this process is not root, or if this host lacks a program that containers need.
func checkHost() error {
	if os.Geteuid() != 0 {
		return errors.New("containers need root: use sudo")
	}

	for _, program := range []string{"systemd-nspawn", "unshare", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("this host has no %s: apt-get install systemd-container iproute2 util-linux",
				program)
		}
	}

	return nil
}

// checkNewMachine returns an error if this host does not have enough resources for a new machine. A machine
// with a record is not checked again, since its own files have used some of the space.
func (p *Provider) checkNewMachine(spec provider.Spec) error {
	if _, err := provider.ReadRecord(filepath.Join(p.dir, p.instanceID(spec.Machine))); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	host, free, err := provider.ThisHost(p.env.Dir)
	if err != nil {
		return err
	}

	return checkHardware(host, free, spec)
}

// checkHardware returns an error if this host does not meet the constraints, or if its disk is nearly full.
// The free space, in MiB, counts as the size of the machine's disk, since a machine can use no more.
func checkHardware(host constraints.Hardware, free uint64, spec provider.Spec) error {
	host.Container = Name // for the constraint container
	host.RootDisk = free
	if err := provider.CheckFit(host, spec); err != nil {
		return err
	}
	if free < minFreeDisk {
		return fmt.Errorf("only %d MB are free for the machine's files, but %d are needed: %w",
			free, minFreeDisk, syscall.ENOSPC)
	}

	return nil
}

// environmentRecord contains the fields of environment.yaml that a container needs.
type environmentRecord struct {
	State string `yaml:"state"`
	Tools string `yaml:"tools"`
}

// readEnvironment reads the fields of the environment's record that a container needs. It makes the path of
// a SQLite store absolute. If there is no record, all fields are empty.
func (p *Provider) readEnvironment() (r environmentRecord, err error) {
	if err := p.env.ReadRecord(&r); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}

	path, isFile := strings.CutPrefix(r.State, "sqlite:")
	if isFile && !filepath.IsAbs(path) {
		r.State = "sqlite:" + filepath.Join(p.env.Dir, path)
	}
	return r, nil
}

// stateFolders returns the directories on this host that a container's agent needs to reach the state: the
// directory of the state's file, or the directories of its sockets. It returns none if the agent reaches the
// state over the network, or if r is empty. It returns an error if the state has only loopback addresses,
// which a container cannot reach.
func (r environmentRecord) stateFolders() ([]string, error) {
	// The URL has the form SCHEME:[//]LOCATION[?OPTIONS].
	scheme, location, _ := strings.Cut(r.State, ":")
	location, _, _ = strings.Cut(strings.TrimPrefix(location, "//"), "?")
	switch scheme {
	case "", "sqlite":
		return parentFolders(location), nil
	case "etcd+unix":
		return parentFolders(strings.Split(location, ",")...), nil
	}

	hosts, _, _ := strings.Cut(location, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if !isLoopback(host) {
			return nil, nil
		}
	}

	return nil, fmt.Errorf("containers cannot reach the model's state at %s, a loopback address: "+
		"let etcd listen at an address of this host, and bootstrap with --state etcd://ADDRESS:PORT", hosts)
}

// parentFolders returns the directories of the files, each once. It ignores relative paths.
func parentFolders(paths ...string) (folders []string) {
	for _, path := range paths {
		if folder := filepath.Dir(path); filepath.IsAbs(path) && !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// isLoopback reports whether HOST:PORT is a loopback address of this host. The port is optional, except after an
// IPv6 address. It returns false for a host name other than localhost.
func isLoopback(hostPort string) bool {
	host := hostPort
	if colon := strings.LastIndexByte(hostPort, ':'); colon >= 0 {
		host = hostPort[:colon]
	}
	if host == "localhost" {
		return true
	}

	address, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && address.IsLoopback()
}

// resolveAgent sets l.hostFolders to the host's directories that the container needs for its agent and
// storage, and l.tools to the directory of the agent's binary. A confined container gets a gateway instead of
// the state's directories: resolveAgent creates the gateway's directory, and sets l.gateway and l.state.
func (l *launch) resolveAgent() error {
	r, err := l.provider.readEnvironment()
	if err != nil {
		return err
	}
	folders, err := r.stateFolders()
	if err != nil {
		return err
	}
	if provider.IsConfined(l.provider.env.Config) {
		if err := l.confine(r); err != nil {
			return err
		}
		// The agent reaches the state through the gateway.
		folders = nil
	}

	storage, err := storageFolders(l.provider.env.Config)
	if err != nil {
		return err
	}

	l.hostFolders = append(folders, storage...)
	l.tools = filepath.Join(l.provider.env.Dir, "tools", cmp.Or(l.spec.Tools, r.Tools))
	return nil
}
