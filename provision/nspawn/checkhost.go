package nspawn

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"bijou/provision/provider"
	"bijou/state/constraints"
)

// minFreeDisk is the space that a machine needs to boot and to keep its logs, in MB.
const minFreeDisk = 100

// HostSeries returns the series that machines can have here, with these settings: that of the tree that
// they are given, or the host's own. It refuses a host that cannot have containers as it is, with
// what to do.
func HostSeries(config map[string]string) (series string, err error) {
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

// A machine that has a record did fit, and is not checked again: it has since used the space that
// was free.
func (p *Provider) checkNewMachine(spec provider.Spec) error {
	if _, err := readRecord(filepath.Join(p.dir, p.instanceID(spec.Machine))); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	host, free, err := provider.ThisHost(p.env.Dir)
	if err != nil {
		return err
	}
	return checkHardware(host, free, spec)
}

// What is asked as a minimum is also the maximum that it gets; of the disk it can have what is
// free.
func checkHardware(host constraints.Hardware, free uint64, spec provider.Spec) error {
	host.Container, host.RootDisk = Name, free
	if err := provider.CheckFit(host, spec); err != nil {
		return err
	}
	if free < minFreeDisk {
		return fmt.Errorf("%d MB are free for the machine's files, and %d are needed: %w", free, minFreeDisk, syscall.ENOSPC)
	}
	return nil
}

// limits bound a container's resources; 0 is all.
type limits struct {
	mem   uint64 // MB
	cores uint64
}
