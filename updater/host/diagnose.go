package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/dbus"
	"golang.org/x/sys/unix"

	"bijou/state/osutil"
	"bijou/updater/record"
	"bijou/updater/release"
)

// RackFile contains this boot server's logical rack number.
const RackFile = "/etc/neco/rack"

// LRN reads this boot server's logical rack number from RackFile.
func LRN() (int, error) {
	data, err := os.ReadFile(RackFile)
	if err != nil {
		return 0, err
	}
	return record.ParseLRN(strings.TrimSpace(string(data)))
}

// minFreePercent is the free share of a disk below which Diagnose reports a problem.
const minFreePercent = 5

// Diagnose examines this server: the components of the manifest, the disks to which the worker writes, and
// the clock. It changes nothing.
func (h *Host) Diagnose(ctx context.Context, m release.Manifest) (all []record.Diagnosis) {
	for _, c := range m.Components {
		// The checks below look only at these parts.
		if len(c.Services) == 0 && c.Health == nil && c.Artifact == nil {
			continue
		}

		d := record.Diagnosis{What: c.Name, How: "well"}
		if err := h.checkComponent(ctx, c); err != nil {
			d.How = err.Error()
			d.Bad = true
		}
		// If this fails, the result still shows the component's health.
		if needed, err := h.NeedsUpdate(ctx, c); err == nil && needed {
			d.How += "; the installed version is not that of this plan"
		}
		all = append(all, d)
	}

	for _, dir := range []string{h.dir, "/"} {
		all = append(all, checkDisk(dir))
	}
	return append(all, checkClock(ctx))
}

// checkComponent returns an error if an installed part of the component is missing, or the component is not
// healthy.
func (h *Host) checkComponent(ctx context.Context, c release.Component) error {
	if err := h.checkArtifact(ctx, c); err != nil {
		return err
	}
	return h.CheckHealth(ctx, c)
}

// checkDisk returns the free space on the directory's disk. Less than minFreePercent is a problem.
func checkDisk(dir string) record.Diagnosis {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return record.Diagnosis{What: "disk of " + dir, How: err.Error(), Bad: true}
	}

	percent := 100 * s.Bavail / max(1, s.Blocks)
	return record.Diagnosis{
		What: "disk of " + dir,
		How:  fmt.Sprintf("%d MiB free, %d %%", s.Bavail*uint64(s.Frsize)>>20, percent),
		Bad:  percent < minFreePercent,
	}
}

// checkClock returns the time of the host's clock, and whether the clock is synchronised.
func checkClock(ctx context.Context) record.Diagnosis {
	d := record.Diagnosis{What: "clock", How: time.Now().UTC().Format(time.RFC3339)}
	out, err := exec.CommandContext(ctx, "timedatectl", "show", "--property=NTPSynchronized", "--value").Output()
	switch {
	case err != nil:
		// Nothing is known about the clock, so this is not a problem.
		d.How += "; cannot ask timedatectl if it is synchronised: " + err.Error()
	case strings.TrimSpace(string(out)) != "yes":
		d.How += "; it is not synchronised"
		d.Bad = true
	default:
		d.How += ", synchronised"
	}

	return d
}

// Journal returns the last lines that a systemd unit has logged on this host, or the reason why they cannot
// be read.
func Journal(ctx context.Context, unit string, lines int) string {
	out, err := exec.CommandContext(ctx, "journalctl", "--no-pager", "--output=short-iso", "--unit="+unit,
		fmt.Sprintf("--lines=%d", lines)).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("cannot read the journal of %s: %v: %s\n", unit, err, tail(out))
	}
	return string(out)
}

// inputsDigest returns the digest of the files that the component's services read at their start: their
// unit files, and the files that the manifest declares. It returns "" if no such file is known.
func (h *Host) inputsDigest(ctx context.Context, c release.Component) (string, error) {
	sum := sha256.New()
	isAnyKnown := len(c.Files) > 0
	for _, unit := range c.Services {
		text, err := h.services.Files(ctx, unit)
		if err != nil {
			return "", err
		}
		isAnyKnown = isAnyKnown || len(text) > 0
		fmt.Fprintf(sum, "%s %d\n%s\n", unit, len(text), text)
	}

	for _, f := range c.Files {
		// The digest of a missing file is "".
		digest, _, err := osutil.DigestFile(f.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		fmt.Fprintln(sum, f.Path, digest)
	}

	if !isAnyKnown {
		return "", nil
	}

	return hex.EncodeToString(sum.Sum(nil)), nil
}

// inputsChanged reports whether the files that the component's services read at their start have changed
// since then. recorded is the component's record. It returns false if the files were or are unknown.
func (h *Host) inputsChanged(ctx context.Context, c release.Component, recorded componentRecord) (bool, error) {
	current, err := h.inputsDigest(ctx, c)
	if err != nil {
		return false, err
	}
	return record.Differ(recorded.Inputs, current), nil
}

// Differences describes how the component differs from the release, according to its record and its files. It
// returns nil if there is no difference.
func (h *Host) Differences(ctx context.Context, c release.Component) (all []string, err error) {
	recorded, err := h.readRecord(c.Name)
	if err != nil {
		return nil, err
	}

	if recorded.Phase == phaseChanging || recorded.Phase == phaseStarting {
		all = append(all, "an update of the component was interrupted")
	}
	if want := artifactID(c.Artifact); c.Artifact != nil && recorded.Artifact != want {
		all = append(all, fmt.Sprintf("its artifact is %q, not %q", recorded.Artifact, want))
	}

	for _, f := range c.Files {
		digest, _, err := osutil.DigestFile(f.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			all = append(all, f.Path+" does not exist")
		case err != nil:
			return nil, err
		case digest != f.SHA256:
			all = append(all, fmt.Sprintf("the sum of %s is %s, not %s", f.Path, digest, f.SHA256))
		}
	}

	haveInputsChanged, err := h.inputsChanged(ctx, c, recorded)
	if err != nil {
		return nil, err
	}
	if haveInputsChanged {
		all = append(all, "its unit files or declared files have changed since it was started")
	}

	return all, nil
}

// Files returns the contents of a unit's file and of its drop-ins, each below a line with its path. It leaves
// out the drop-in with which this package keeps a unit stopped. A file that no longer exists counts as empty.
func (s Systemd) Files(ctx context.Context, unit string) (text []byte, err error) {
	err = s.withUnit(ctx, "read the files of", unit, func(c *sd.Conn) error {
		p, err := c.GetUnitPropertiesContext(ctx, unit)
		if err != nil {
			return err
		}

		// After a reconnection, this function runs again.
		text = nil
		unitFile, _ := p["FragmentPath"].(string)
		dropIns, _ := p["DropInPaths"].([]string)
		for _, file := range append([]string{unitFile}, dropIns...) {
			if file == "" || file == holdFile(unit) {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			text = fmt.Appendf(text, "# %s\n%s\n", file, data)
		}

		return nil
	})

	return text, err
}

// Files returns nothing, since the command cannot list the files of a unit.
func (s ServiceCommand) Files(context.Context, string) ([]byte, error) { return nil, nil }

// answerTimeout limits one health check.
const answerTimeout = 10 * time.Second

// CheckHealth returns an error that explains why the component is not healthy on this server. A component is
// healthy if its services are running, its health check succeeds, and its command after the start has run.
func (h *Host) CheckHealth(ctx context.Context, c release.Component) error {
	recorded, err := h.readRecord(c.Name)
	if err != nil {
		return err
	}
	// ensureRunning has not completed its last start, so the command may not have run.
	if recorded.Phase == phaseStarting {
		return errors.New("the command after-start has not run")
	}

	return h.probe(ctx, c)
}

// IsRunning reports whether the component's services are running, without a health check.
func (h *Host) IsRunning(ctx context.Context, c release.Component) bool {
	return h.checkActive(ctx, c.Services) == nil
}

// probe returns an error unless the component's services are running and its health check succeeds.
func (h *Host) probe(ctx context.Context, c release.Component) error {
	if err := h.checkActive(ctx, c.Services); err != nil {
		return err
	}
	if c.Health == nil {
		return nil
	}

	return h.runCheck(ctx, *c.Health)
}

// CheckMembers checks the component's members on the given servers with the component's check of members, and
// returns the unhealthy ones. asked is false if the component has no such check.
func (h *Host) CheckMembers(ctx context.Context, c release.Component, lrns []int) (unhealthy map[int]error, asked bool) {
	if c.Members == nil {
		return nil, false
	}

	// The checks run in parallel, since each of them can take a while.
	problems := make([]error, len(lrns))
	var checking sync.WaitGroup
	for i, lrn := range lrns {
		checking.Go(func() { problems[i] = h.runCheck(ctx, memberCheck(*c.Members, lrn)) })
	}
	checking.Wait()

	unhealthy = map[int]error{}
	for i, lrn := range lrns {
		if problems[i] != nil {
			unhealthy[lrn] = problems[i]
		}
	}

	return unhealthy, true
}

// memberCheck returns a copy of the check in which the LRN replaces {lrn}.
func memberCheck(m release.Health, lrn int) release.Health {
	fill := func(s string) string { return strings.ReplaceAll(s, "{lrn}", strconv.Itoa(lrn)) }
	m.HTTP = fill(m.HTTP)
	m.Command = slices.Clone(m.Command)
	for i := range m.Command {
		m.Command[i] = fill(m.Command[i])
	}
	return m
}

// runCheck runs a health check, and returns an error if the check fails or takes longer than answerTimeout.
func (h *Host) runCheck(ctx context.Context, c release.Health) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if c.HTTP != "" {
		return h.checkHTTP(ctx, c.HTTP)
	}
	return runCommand(ctx, c.Command)
}

// checkHTTP returns an error unless the URL answers with 200.
func (h *Host) checkHTTP(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := h.directClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", url, err)
	}
	defer resp.Body.Close()

	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, resp.Status, tail(body))
	}

	return nil
}
