package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bijou/updater/record"
	"bijou/updater/release"
)

// RackFile holds this boot server's logical rack number.
const RackFile = "/etc/neco/rack"

// LRN reads this boot server's number from RackFile.
func LRN() (int, error) {
	data, err := os.ReadFile(RackFile)
	if err != nil {
		return 0, err
	}
	return record.ParseLRN(strings.TrimSpace(string(data)))
}

// minFreePercent is the free share of a disk below which it is reported.
const minFreePercent = 5

// Diagnose diagnoses this server: the components of the manifest, the disks that the worker
// writes to, and the clock. It changes nothing.
func (h *Host) Diagnose(ctx context.Context, m release.Manifest) (all []record.Diagnosis) {
	for _, c := range m.Components {
		if len(c.Services) == 0 && c.Health == nil {
			continue
		}
		f := record.Diagnosis{What: c.Name, How: "well"}
		if err := h.CheckHealth(ctx, c); err != nil {
			f.How, f.Bad = err.Error(), true
		}
		if needed, err := h.NeedsUpdate(ctx, c); err == nil && needed {
			f.How += "; what is installed is not this plan's"
		}
		all = append(all, f)
	}
	for _, dir := range []string{h.dir, "/"} {
		all = append(all, checkDisk(dir))
	}
	return append(all, checkClock(ctx))
}

func checkDisk(dir string) record.Diagnosis {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return record.Diagnosis{What: "disk of " + dir, How: err.Error(), Bad: true}
	}
	percent := 100 * s.Bavail / max(1, s.Blocks)
	return record.Diagnosis{What: "disk of " + dir, How: fmt.Sprintf("%d MiB free, %d %%", s.Bavail*uint64(s.Bsize)>>20, percent), Bad: percent < minFreePercent}
}

func checkClock(ctx context.Context) record.Diagnosis {
	f := record.Diagnosis{What: "clock", How: time.Now().UTC().Format(time.RFC3339)}
	out, err := exec.CommandContext(ctx, "timedatectl", "show", "--property=NTPSynchronized", "--value").Output()
	switch {
	case err != nil:
		f.How += "; cannot ask timedatectl if it is synchronised: " + err.Error()
	case strings.TrimSpace(string(out)) != "yes":
		f.How, f.Bad = f.How+"; it is not synchronised", true
	default:
		f.How += ", synchronised"
	}
	return f
}

// Journal returns the last lines that a unit of systemd's has logged here, or why there
// are none.
func Journal(ctx context.Context, unit string, lines int) string {
	out, err := exec.CommandContext(ctx, "journalctl", "--no-pager", "--output=short-iso", "--unit="+unit, fmt.Sprintf("--lines=%d", lines)).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("cannot read the journal of %s: %v: %s\n", unit, err, tail(out))
	}
	return string(out)
}
