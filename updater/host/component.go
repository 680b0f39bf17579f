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
	phaseChanging = "changing" // its artifact is being replaced, or its services are to be restarted
	phaseStarting = "starting" // its services were found ill; what comes after their start is not done
	phaseCurrent  = "current"  // it runs what is installed
)

// componentRecord is written before a component is touched, and after.
type componentRecord struct {
	Artifact string `json:"artifact"` // what is, or is to be, installed
	Phase    string `json:"phase"`
	Inputs   string `json:"setting,omitempty"` // what its services were started with

	// Package and PackageVersion are those of a deb, as dpkg calls them; former versions did not note them.
	Package        string `json:"package,omitempty"`
	PackageVersion string `json:"package-version,omitempty"`

	// Unpacked are the entries of an archive's folder that held files when the component was well, as
	// filledEntries has them; former versions did not note them.
	Unpacked []string `json:"unpacked,omitempty"`

	// NotedOf is the artifact of which that was noted. It is not Artifact if a former version has installed
	// another one since; "": a former version has noted it.
	NotedOf string `json:"noted-of,omitempty"`
}

func (h *Host) componentFile(name string) string {
	return filepath.Join(h.dir, "components", name+".json")
}

// readRecord returns the component's record; the zero record if the component was never touched.
func (h *Host) readRecord(name string) (c componentRecord, err error) {
	_, err = jsonfile.Read(h.componentFile(name), &c)
	if err != nil {
		return c, fmt.Errorf("cannot read what is installed of %s: %w", name, err)
	}

	if c.NotedOf != "" && c.NotedOf != c.Artifact {
		return componentRecord{Artifact: c.Artifact, Phase: c.Phase, Inputs: c.Inputs}, nil
	}

	return c, nil
}

func (h *Host) writeRecord(name string, c componentRecord) error {
	err := jsonfile.Write(h.componentFile(name), c)
	if err != nil {
		return fmt.Errorf("cannot write what is installed of %s: %w", name, err)
	}

	return nil
}

// NeedsUpdate reports whether the component must be updated on this server: its artifact differs or is
// gone, an earlier update was interrupted, or its files have changed since it was started.
func (h *Host) NeedsUpdate(ctx context.Context, c release.Component) (bool, error) {
	was, err := h.readRecord(c.Name)
	if err != nil || was.Phase == phaseChanging || c.Artifact != nil && was.Artifact != artifactID(c.Artifact) {
		return err == nil, err
	}
	if h.checkArtifact(ctx, c) != nil {
		return true, ctx.Err()
	}

	return h.inputsChanged(ctx, c, was)
}

// Prepare downloads the files that an update needs. It touches nothing that runs.
func (h *Host) Prepare(ctx context.Context, c release.Component) error {
	needed, err := h.NeedsUpdate(ctx, c)
	if err != nil || !needed || c.Artifact == nil {
		return err
	}
	return h.fetchArtifact(h.withTimeout(ctx, c), c)
}

// Stop stops the component's services.
func (h *Host) Stop(ctx context.Context, c release.Component) error {
	return forEachUnit(h.withTimeout(ctx, c), c.Services, h.services.Stop)
}

// Update brings the component to the state that the release wants, and returns once it is healthy. It does
// not touch a healthy component that has not changed.
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

	artifact := artifactID(c.Artifact)
	next := componentRecord{Artifact: artifact, Phase: phaseChanging, NotedOf: artifact}
	if err := h.writeRecord(c.Name, next); err != nil {
		return err
	}

	if err := h.installArtifact(ctx, c); err != nil {
		return err
	}
	if c.Artifact != nil && c.Artifact.Deb != nil {
		next.Package, next.PackageVersion = readPackage(ctx, h.downloadPath(c.Artifact.Deb.SHA256))
	}
	if c.Artifact != nil && c.Artifact.Archive != nil {
		next.Unpacked = filledEntries(releaseDir(*c.Artifact.Archive))
	}

	if next.Inputs, err = h.inputsDigest(ctx, c); err != nil {
		return err
	}
	if err := forEachUnit(ctx, c.Services, h.services.Restart); err != nil {
		return err
	}
	if err := h.awaitHealthy(ctx, c); err != nil {
		return err
	}

	// The component's own commands may have removed some of these entries: they do not have to be there.
	if next.Unpacked != nil {
		now := filledEntries(releaseDir(*c.Artifact.Archive))
		next.Unpacked = slices.DeleteFunc(next.Unpacked, func(name string) bool { return !slices.Contains(now, name) })
	}

	next.Phase = phaseCurrent
	if err := h.writeRecord(c.Name, next); err != nil {
		return err
	}

	h.removeDownloads(c.Artifact.Files())
	return nil
}

// ensureRunning starts services of the component that an earlier step, or a fault, has stopped. It does not
// touch services that run.
func (h *Host) ensureRunning(ctx context.Context, c release.Component) error {
	was, err := h.readRecord(c.Name)
	if err != nil {
		return err
	}
	now, err := h.inputsDigest(ctx, c)
	if err != nil {
		return err
	}

	if now == "" {
		now = was.Inputs
	}
	if h.CheckHealth(ctx, c) == nil {
		if was.Inputs == now {
			return nil
		}
		was.Inputs = now // it was not known
		return h.writeRecord(c.Name, was)
	}

	was.Phase = phaseStarting
	was.Inputs = now
	if err := h.writeRecord(c.Name, was); err != nil {
		return err
	}
	if err := h.startOrRestart(ctx, c); err != nil {
		return err
	}
	if err := h.awaitHealthy(ctx, c); err != nil {
		return err
	}

	was.Phase = phaseCurrent
	return h.writeRecord(c.Name, was)
}

// startOrRestart starts the component's services that do not run, or restarts them. It does nothing if its
// probe succeeds already.
func (h *Host) startOrRestart(ctx context.Context, c release.Component) error {
	if h.probe(ctx, c) == nil { // it was started before, by one that was killed then
		return nil
	}

	stopped := h.checkActive(ctx, c.Services) != nil
	if err := forEachUnit(ctx, c.Services, h.services.Start); err != nil {
		return err
	}
	if stopped || len(c.Services) == 0 {
		return nil
	}

	return forEachUnit(ctx, c.Services, h.services.Restart)
}

// healthyWithin returns how long the component may take to become healthy after its start.
func (h *Host) healthyWithin(c release.Component) time.Duration {
	if h.healthTimeout != 0 {
		return h.healthTimeout
	}
	return c.MaxStart()
}

// awaitHealthy blocks until the component is healthy. It also runs the component's command after its start,
// and watches the component for its soak time.
func (h *Host) awaitHealthy(ctx context.Context, c release.Component) error {
	if err := h.afterStart(ctx, c); err != nil {
		return err
	}

	doing := activity.Begin(ctx, "waits until %s is well", c.Name)
	defer doing.End()
	healthyWithin := h.healthyWithin(c)
	limit, cancel := context.WithTimeout(ctx, healthyWithin)
	defer cancel()

	var ill error
	err := poll(limit, func() (bool, error) {
		err := h.probe(limit, c)
		if limit.Err() == nil || ill == nil { // that it was cut off tells nothing
			ill = err
			doing.Say("waits until %s is well: %v", c.Name, ill)
		}
		return err == nil, nil
	})

	if timedOut(ctx, limit) {
		return fmt.Errorf("%s is not well %s after its start: %w", c.Name, healthyWithin, ill)
	}
	if err != nil {
		return err
	}

	return h.soak(ctx, c)
}

// soak watches that the component stays healthy for the time that the manifest asks for.
func (h *Host) soak(ctx context.Context, c release.Component) error {
	if c.Soak == 0 {
		return nil
	}

	doing := activity.Begin(ctx, "watches for %s if %s stays well", time.Duration(c.Soak), c.Name)
	defer doing.End()

	over := time.Now().Add(time.Duration(c.Soak))
	return poll(ctx, func() (bool, error) {
		if err := h.probe(ctx, c); err != nil && ctx.Err() == nil {
			return false, fmt.Errorf("%s did not stay well: %w", c.Name, err)
		}
		return time.Now().After(over), nil
	})
}
