package host

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"bijou/updater/activity"
	"bijou/updater/release"
)

// The phases of what is written about a component.
const (
	changing = "changing" // its artifact is being replaced, or its services are to be restarted
	starting = "starting" // its services were found ill; what comes after their start is not done
	current  = "current"  // it runs what is installed
)

// component is what is written on the disk about one component before it is
// touched, and after.
type component struct {
	Artifact string `json:"artifact"` // what is, or is to be, installed
	Phase    string `json:"phase"`
	Setting  string `json:"setting,omitempty"` // what its services were started with
}

func (h *Host) componentFile(name string) string {
	return filepath.Join(h.dir, "components", name+".json")
}

// recall reads what was written about the component; of one that was never
// touched, nothing.
func (h *Host) recall(name string) (c component, err error) {
	if err = release.ReadJSON(h.componentFile(name), &c); err != nil {
		err = fmt.Errorf("cannot read what is installed of %s: %w", name, err)
	}
	return c, err
}

// note writes it.
func (h *Host) note(name string, c component) error {
	if err := release.KeepJSON(h.componentFile(name), c); err != nil {
		return fmt.Errorf("cannot write what is installed of %s: %w", name, err)
	}
	return nil
}

// NeedsUpdate tells if the component has to be updated here: its artifact is another
// one, a former update was cut short, or its files have changed since it was started.
func (h *Host) NeedsUpdate(ctx context.Context, c release.Component) (bool, error) {
	was, err := h.recall(c.Name)
	if err != nil || was.Phase == changing || c.Artifact != nil && was.Artifact != identity(c.Artifact) {
		return err == nil, err
	}
	return h.reset(ctx, c, was)
}

// Prepare brings what an update needs to this server's disk. Nothing that runs
// is touched.
func (h *Host) Prepare(ctx context.Context, c release.Component) error {
	needed, err := h.NeedsUpdate(ctx, c)
	if err != nil || !needed || c.Artifact == nil {
		return err
	}
	return h.prepare(h.limit(ctx, c), c)
}

// Stop stops the component's services.
func (h *Host) Stop(ctx context.Context, c release.Component) error {
	return each(h.limit(ctx, c), c.Services, h.services.Stop)
}

// Update makes the component what the release says, and returns once it is well.
// One that did not change and is well is left alone.
func (h *Host) Update(ctx context.Context, c release.Component) error {
	ctx = h.limit(ctx, c)
	needed, err := h.NeedsUpdate(ctx, c)
	if err != nil {
		return err
	}
	if !needed {
		return h.keepUp(ctx, c)
	}
	if err := h.prepare(ctx, c); err != nil {
		return err
	}
	next := component{Artifact: identity(c.Artifact), Phase: changing}
	if err := h.note(c.Name, next); err != nil {
		return err
	}
	if err := h.replace(ctx, c); err != nil {
		return err
	}
	if next.Setting, err = h.setting(ctx, c); err != nil {
		return err
	}
	if err := each(ctx, c.Services, h.services.Restart); err != nil {
		return err
	}
	if err := h.settle(ctx, c); err != nil {
		return err
	}
	next.Phase = current
	if err := h.note(c.Name, next); err != nil {
		return err
	}
	h.forget(c.Artifact.Files())
	return nil
}

// keepUp starts what should run and does not: it was stopped by the step before,
// or by a fault. What it finds running is not touched.
func (h *Host) keepUp(ctx context.Context, c release.Component) error {
	was, err := h.recall(c.Name)
	if err != nil {
		return err
	}
	now, err := h.setting(ctx, c)
	if err != nil {
		return err
	}
	if now == "" {
		now = was.Setting
	}
	if h.CheckHealth(ctx, c) == nil {
		if was.Setting == now {
			return nil
		}
		was.Setting = now // it was not known
		return h.note(c.Name, was)
	}
	was.Phase, was.Setting = starting, now
	if err := h.note(c.Name, was); err != nil {
		return err
	}
	if err := h.rouse(ctx, c); err != nil {
		return err
	}
	if err := h.settle(ctx, c); err != nil {
		return err
	}
	was.Phase = current
	return h.note(c.Name, was)
}

// rouse starts the services, or restarts them if they run and are ill.
func (h *Host) rouse(ctx context.Context, c release.Component) error {
	if h.works(ctx, c) == nil { // it was started before, by one that was killed then
		return nil
	}
	stopped := h.active(ctx, c.Services) != nil
	if err := each(ctx, c.Services, h.services.Start); err != nil {
		return err
	}
	if stopped || len(c.Services) == 0 {
		return nil
	}
	return each(ctx, c.Services, h.services.Restart)
}

// settle does what comes after the start, and waits until the component is well,
// and stays so for its soak time.
func (h *Host) settle(ctx context.Context, c release.Component) error {
	if err := h.afterStart(ctx, c.AfterStart); err != nil {
		return err
	}
	doing := activity.Begin(ctx, "waits until %s is well", c.Name)
	defer doing.End()
	limit, cancel := context.WithTimeout(ctx, h.patience)
	defer cancel()
	var ill error
	err := until(limit, func() (bool, error) {
		err := h.works(limit, c)
		if limit.Err() == nil || ill == nil { // that it was cut off tells nothing
			ill = err
			doing.Say("waits until %s is well: %v", c.Name, ill)
		}
		return err == nil, nil
	})
	if limited(ctx, limit) {
		return fmt.Errorf("%s is not well %s after its start: %w", c.Name, h.patience, ill)
	}
	if err != nil {
		return err
	}
	return h.soak(ctx, c)
}

// soak watches the component for a while, in which it must stay well.
func (h *Host) soak(ctx context.Context, c release.Component) error {
	if c.Soak == 0 {
		return nil
	}
	doing := activity.Begin(ctx, "watches for %s if %s stays well", time.Duration(c.Soak), c.Name)
	defer doing.End()
	over := time.Now().Add(time.Duration(c.Soak))
	return until(ctx, func() (bool, error) {
		if err := h.works(ctx, c); err != nil && ctx.Err() == nil {
			return false, fmt.Errorf("%s did not stay well: %w", c.Name, err)
		}
		return time.Now().After(over), nil
	})
}
