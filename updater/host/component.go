package host

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"bijou/state/jsonfile"
	"bijou/updater/activity"
	"bijou/updater/release"
)

// The phases of a componentRecord.
const (
	phaseChanging = "changing" // the component's artifact is being replaced, or its services must be restarted
	phaseStarting = "starting" // its services are being started again because they were not healthy
	phaseCurrent  = "current"  // its services run the installed artifact
)

// componentRecord is written before and after each change of a component.
type componentRecord struct {
	Artifact string `json:"artifact"` // the artifact that is installed, or is being installed
	Phase    string `json:"phase"`
	Inputs   string `json:"setting,omitempty"` // the digest of the files with which its services were started

	// Package and PackageVersion are dpkg's name and version of a deb. Earlier versions did not record them.
	Package        string `json:"package,omitempty"`
	PackageVersion string `json:"package-version,omitempty"`

	// Unpacked are the entries of an archive's directory that contained files when the component was healthy,
	// as returned by filledEntries. Earlier versions did not record them.
	Unpacked []string `json:"unpacked,omitempty"`

	// NotedOf is the artifact to which Package, PackageVersion and Unpacked belong. It differs from Artifact
	// if an earlier version has installed another artifact since. It is "" if an earlier version wrote the
	// record.
	NotedOf string `json:"noted-of,omitempty"`
}

// componentFile returns the path of the component's record.
func (h *Host) componentFile(name string) string {
	return filepath.Join(h.dir, "components", name+".json")
}

// readRecord returns the component's record, without the fields that belong to a previous artifact. It returns
// the zero record if the component was never installed.
func (h *Host) readRecord(name string) (c componentRecord, err error) {
	_, err = jsonfile.Read(h.componentFile(name), &c)
	if err != nil {
		return c, fmt.Errorf("cannot read the record of the installed %s: %w", name, err)
	}

	// An earlier version, which does not know NotedOf, has installed another artifact since.
	if c.NotedOf != "" && c.NotedOf != c.Artifact {
		return componentRecord{Artifact: c.Artifact, Phase: c.Phase, Inputs: c.Inputs}, nil
	}

	return c, nil
}

// writeRecord replaces the component's record.
func (h *Host) writeRecord(name string, c componentRecord) error {
	err := jsonfile.Write(h.componentFile(name), c)
	if err != nil {
		return fmt.Errorf("cannot write the record of the installed %s: %w", name, err)
	}

	return nil
}

// NeedsUpdate reports whether the component must be updated on this server. This is the case if its artifact
// differs or is missing, if an earlier update was interrupted, or if its files have changed since it was
// started.
func (h *Host) NeedsUpdate(ctx context.Context, c release.Component) (bool, error) {
	recorded, err := h.readRecord(c.Name)
	if err != nil {
		return false, err
	}

	wasInterrupted := recorded.Phase == phaseChanging
	hasOtherArtifact := c.Artifact != nil && recorded.Artifact != artifactID(c.Artifact)
	if wasInterrupted || hasOtherArtifact {
		return true, nil
	}
	if h.checkArtifact(ctx, c) != nil {
		// If ctx has ended, the error of the check proves nothing.
		return true, ctx.Err()
	}

	return h.inputsChanged(ctx, c, recorded)
}

// Prepare downloads the files that an update needs. It does not affect running services.
func (h *Host) Prepare(ctx context.Context, c release.Component) error {
	needed, err := h.NeedsUpdate(ctx, c)
	if err != nil {
		return err
	}
	if !needed || c.Artifact == nil {
		return nil
	}
	return h.fetchArtifact(h.withTimeout(ctx, c), c)
}

// Stop stops the component's services.
func (h *Host) Stop(ctx context.Context, c release.Component) error {
	return forEachUnit(h.withTimeout(ctx, c), c.Services, h.services.Stop)
}

// Update brings the component to the state of the release, and returns once it is healthy. It does not change
// a healthy component that does not differ from the release.
func (h *Host) Update(ctx context.Context, c release.Component) error {
	ctx = h.withTimeout(ctx, c)
	needed, err := h.NeedsUpdate(ctx, c)
	if err != nil {
		return err
	}
	if !needed {
		return h.ensureRunning(ctx, c)
	}
	if err := h.fetchArtifact(ctx, c); err != nil {
		return err
	}

	// If the update is interrupted after this, NeedsUpdate returns true. NotedOf is already the new artifact, to
	// which the fields set by noteInstalled will belong.
	artifact := artifactID(c.Artifact)
	next := componentRecord{Artifact: artifact, Phase: phaseChanging, NotedOf: artifact}
	if err := h.writeRecord(c.Name, next); err != nil {
		return err
	}

	if err := h.installArtifact(ctx, c); err != nil {
		return err
	}

	// This only adds to next, which is written once the component is healthy.
	h.noteInstalled(ctx, &next, c.Artifact)

	// Read the inputs before the restart. If they change later, the component needs another update.
	if next.Inputs, err = h.inputsDigest(ctx, c); err != nil {
		return err
	}
	if err := forEachUnit(ctx, c.Services, h.services.Restart); err != nil {
		return err
	}
	if err := h.awaitHealthy(ctx, c); err != nil {
		return err
	}

	// The component's own commands may have removed some of these entries. Entries that are gone are not
	// required later.
	if next.Unpacked != nil {
		filled := filledEntries(releaseDir(*c.Artifact.Archive))
		next.Unpacked = slices.DeleteFunc(next.Unpacked, func(name string) bool { return !slices.Contains(filled, name) })
	}

	next.Phase = phaseCurrent
	if err := h.writeRecord(c.Name, next); err != nil {
		return err
	}

	h.removeDownloads(c.Artifact.Files())
	return nil
}

// noteInstalled adds the package or files of the newly installed artifact to the record, so that later checks
// notice if they are gone. It adds nothing if the artifact is an image or nil.
func (h *Host) noteInstalled(ctx context.Context, r *componentRecord, a *release.Artifact) {
	switch {
	case a == nil:
		// There is nothing to note.
	case a.Deb != nil:
		r.Package, r.PackageVersion = readPackage(ctx, h.downloadPath(a.Deb.SHA256))
	case a.Archive != nil:
		r.Unpacked = filledEntries(releaseDir(*a.Archive))
	}
}

// ensureRunning returns once the component is healthy. If CheckHealth returns an error, for example because an
// earlier step or a fault has stopped a service, ensureRunning calls startOrRestart and awaitHealthy. It also
// records the digest of the component's inputs if the record has none. The caller has checked that a recorded
// digest is still correct.
func (h *Host) ensureRunning(ctx context.Context, c release.Component) error {
	next, err := h.readRecord(c.Name)
	if err != nil {
		return err
	}
	inputs, err := h.inputsDigest(ctx, c)
	if err != nil {
		return err
	}

	isKnown := inputs != ""
	hasNewInputs := isKnown && inputs != next.Inputs
	if hasNewInputs {
		next.Inputs = inputs
	}

	if h.CheckHealth(ctx, c) == nil {
		if !hasNewInputs {
			return nil
		}
		return h.writeRecord(c.Name, next)
	}

	// If the start is interrupted, CheckHealth returns an error until a later call has completed it.
	next.Phase = phaseStarting
	if err := h.writeRecord(c.Name, next); err != nil {
		return err
	}
	if err := h.startOrRestart(ctx, c); err != nil {
		return err
	}
	if err := h.awaitHealthy(ctx, c); err != nil {
		return err
	}

	next.Phase = phaseCurrent
	return h.writeRecord(c.Name, next)
}

// startOrRestart starts the component's services that are not running. If all services are running, it
// restarts all of them. It does nothing if the component's probe succeeds.
func (h *Host) startOrRestart(ctx context.Context, c release.Component) error {
	// The component may be running already, if a previous process has started it and was killed after that.
	if h.probe(ctx, c) == nil {
		return nil
	}

	isAnyStopped := h.checkActive(ctx, c.Services) != nil
	if err := forEachUnit(ctx, c.Services, h.services.Start); err != nil {
		return err
	}
	// The start of a stopped service can make the component healthy. If all were running, only a restart can.
	if isAnyStopped {
		return nil
	}

	return forEachUnit(ctx, c.Services, h.services.Restart)
}

// healthyWithin returns how long the component can take to become healthy after its start.
func (h *Host) healthyWithin(c release.Component) time.Duration {
	if h.healthTimeout != 0 {
		return h.healthTimeout
	}
	return c.MaxStart()
}

// awaitHealthy runs the component's command after its start, and blocks until the component is healthy and
// has stayed healthy for its soak time. It returns an error if the component is not healthy within
// healthyWithin, or does not stay healthy.
func (h *Host) awaitHealthy(ctx context.Context, c release.Component) error {
	if err := h.afterStart(ctx, c); err != nil {
		return err
	}

	doing := activity.Begin(ctx, "waits until %s is healthy", c.Name)
	defer doing.End()
	healthyWithin := h.healthyWithin(c)
	limit, cancel := context.WithTimeout(ctx, healthyWithin)
	defer cancel()

	var problem error // the last result of the probe
	err := poll(limit, func() (bool, error) {
		err := h.probe(limit, c)
		// If the timeout has ended the probe, the previous problem is a better explanation.
		if limit.Err() == nil || problem == nil {
			problem = err
			doing.Say("waits until %s is healthy: %v", c.Name, problem)
		}
		return err == nil, nil
	})

	if timedOut(ctx, limit) {
		return fmt.Errorf("%s was not healthy within %s of its start: %w", c.Name, healthyWithin, problem)
	}
	if err != nil {
		return err
	}

	return h.soak(ctx, c)
}

// soak checks that the component stays healthy for its soak time.
func (h *Host) soak(ctx context.Context, c release.Component) error {
	if c.Soak == 0 {
		return nil
	}

	doing := activity.Begin(ctx, "checks for %s whether %s stays healthy", time.Duration(c.Soak), c.Name)
	defer doing.End()

	end := time.Now().Add(time.Duration(c.Soak))
	return poll(ctx, func() (bool, error) {
		// If ctx has ended, the error of the probe proves nothing.
		if err := h.probe(ctx, c); err != nil && ctx.Err() == nil {
			return false, fmt.Errorf("%s did not stay healthy: %w", c.Name, err)
		}
		return time.Now().After(end), nil
	})
}
