package hookctx

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secrets"
)

// Status returns the workload status of the unit, or of its service with its units.
func (c *Context) Status(ctx context.Context, ofService bool) (hookapi.Status, error) {
	return answer(ctx, c, func() (hookapi.Status, error) {
		return view(ctx, c, func(v *state.View) (hookapi.Status, error) {
			if ofService {
				return readServiceStatus(v, c.opts.Facts.Service)
			}
			u, err := v.Unit(c.opts.Facts.Unit)
			return toStatus(u.Status), err
		})
	})
}

func readServiceStatus(v *state.View, service string) (status hookapi.Status, err error) {
	w, err := v.ServiceStatus(service)
	if err != nil {
		return status, err
	}
	units, err := v.Units(service)
	status = toStatus(w)
	status.Units = map[string]hookapi.Status{}
	for _, u := range units {
		status.Units[u.Name] = toStatus(u.Status)
	}
	return status, err
}

func toStatus(w state.WorkloadStatus) hookapi.Status {
	return hookapi.Status{Status: cmp.Or(w.Status, statusUnknown), Message: w.Message, Data: w.Data}
}

// statusUnknown stands for a status that was never set. The ops library knows this word,
// and fails on an empty one.
const statusUnknown = "unknown"

// SetStatus takes effect at once.
func (c *Context) SetStatus(ctx context.Context, ofService bool, s hookapi.Status) error {
	return c.do(ctx, func() error {
		if ofService {
			if err := c.checkLeader(ctx); err != nil {
				return err
			}
		}
		w := state.WorkloadStatus{Status: s.Status, Message: s.Message, Data: s.Data, Since: time.Now().UTC()}
		err := c.opts.Update(ctx, func(tx *state.Tx) error {
			if ofService {
				return setServiceStatus(tx, c.opts.Facts, w)
			}
			return tx.SetUnitStatus(c.opts.Facts.Unit, w)
		})
		if err == nil && !ofService {
			c.said = &state.WorkloadStatus{Status: w.Status, Message: w.Message, Since: w.Since}
		}
		return err
	})
}

// Said returns what the hook has said last of its unit's workload; nil: nothing.
func (c *Context) Said() *state.WorkloadStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said
}

func setServiceStatus(tx *state.Tx, f hookapi.Facts, w state.WorkloadStatus) error {
	err := tx.CheckLeader(f.Service, f.Unit)
	if errors.Is(err, state.ErrNotLeader) {
		return hookapi.ErrNotLeader
	}
	if err != nil {
		return err
	}
	return tx.SetServiceStatus(f.Service, w)
}

// SetVersion sets the version of the workload that the unit runs, at once.
func (c *Context) SetVersion(ctx context.Context, version string) error {
	return c.do(ctx, func() error {
		unit, err := c.localUnit("")
		if err != nil {
			return err
		}
		return c.opts.Update(ctx, func(tx *state.Tx) error { return tx.SetWorkloadVersion(unit, version, time.Now()) })
	})
}

// Reboot refuses: no machine of bijou's is its to reboot.
func (c *Context) Reboot(ctx context.Context, _ bool) error {
	return c.do(ctx, func() error {
		env, err := view(ctx, c, (*state.View).Environment)
		if err != nil {
			return err
		}
		return fmt.Errorf("cannot reboot: machines of provider %q are not rebooted by their units", env.Provider)
	})
}

// Goals returns the units and relations that the environment has or is to have.
func (c *Context) Goals(ctx context.Context) (hookapi.Goals, error) {
	return answer(ctx, c, func() (goals hookapi.Goals, err error) {
		if _, err := c.localUnit(""); err != nil {
			return goals, err
		}
		return view(ctx, c, func(v *state.View) (hookapi.Goals, error) { return readGoals(v, c.opts.Facts.Service) })
	})
}

func readGoals(v *state.View, service string) (goals hookapi.Goals, err error) {
	goals.Relations = map[string]map[string]hookapi.Goal{}
	if goals.Units, err = readUnitGoals(v, service); err != nil {
		return goals, err
	}
	relations, err := v.ServiceRelations(service)
	for _, r := range relations {
		if r.IsPeer() {
			continue // its units are the service's own
		}
		end, _ := r.Endpoint(service)
		if goals.Relations[end.Name] == nil {
			goals.Relations[end.Name] = map[string]hookapi.Goal{}
		}
		if err := addRelationGoals(v, r, r.Other(service).Service, goals.Relations[end.Name]); err != nil {
			return goals, err
		}
	}
	return goals, err
}

func addRelationGoals(v *state.View, r state.Relation, other string, to map[string]hookapi.Goal) error {
	units, err := readUnitGoals(v, other)
	if err != nil {
		return err
	}
	members, err := v.Members(r.ID)
	if err != nil {
		return err
	}
	goal := hookapi.Goal{Status: "joining", Since: r.Since}
	switch {
	case r.Life != state.Alive:
		goal.Status = string(state.Dying)
	case len(members) > 0:
		goal.Status = "joined"
	}
	to[other] = goal
	maps.Copy(to, units)
	return nil
}

func readUnitGoals(v *state.View, service string) (map[string]hookapi.Goal, error) {
	units, err := v.Units(service)
	if err != nil {
		return nil, err
	}
	goals := map[string]hookapi.Goal{}
	for _, u := range units {
		goal := hookapi.Goal{Status: u.Status.Status, Since: u.Status.Since}
		switch {
		case u.Life == state.Dead:
			continue
		case u.Life == state.Dying:
			goal.Status = string(state.Dying)
		case goal.Status == "" && u.Charm == "":
			goal.Status = "waiting" // for its machine, or its charm
		case goal.Status == "":
			goal.Status = statusUnknown
		}
		goals[u.Name] = goal
	}
	return goals, nil
}

type serviceConfig struct {
	values  map[string]any
	version int64
}

// Config returns the options that the hook sees.
func (c *Context) Config(ctx context.Context) (map[string]any, error) {
	return answer(ctx, c, func() (map[string]any, error) {
		config, err := loadOnce(ctx, c, &c.config, c.readConfig)
		if err != nil {
			return nil, err
		}
		return maps.Clone(config.values), nil
	})
}

func (c *Context) readConfig(v *state.View) (*serviceConfig, error) {
	set, err := v.Config(c.opts.Facts.Service)
	if err != nil {
		return nil, err
	}
	values, err := v.EffectiveConfig(c.opts.Facts.Service, c.opts.CharmURL)
	return &serviceConfig{values, set.Version}, err
}

// SeenConfig returns the version of the configuration that the hook has read, or 0.
func (c *Context) SeenConfig() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.config == nil {
		return 0
	}
	return c.config.version
}

// CloudSpec returns what the operators have given of the cloud.
func (c *Context) CloudSpec(ctx context.Context) (map[string]any, error) {
	return answer(ctx, c, func() (map[string]any, error) { return view(ctx, c, c.readCloudSpec) })
}

func (c *Context) readCloudSpec(v *state.View) (spec map[string]any, err error) {
	s, err := v.Service(c.opts.Facts.Service)
	if err != nil {
		return nil, err
	}
	if !s.Trusted {
		return nil, hookapi.ErrSecretDenied
	}

	r, err := secrets.Get(v, secret.CredentialID)
	if errors.Is(err, state.ErrNotFound) {
		return nil, fmt.Errorf("%w: the operators have given none: juju set-credential", hookapi.ErrSecretDenied)
	}
	if err != nil {
		return nil, err
	}
	ring, err := c.opts.SecretKeys.Read()
	if err != nil {
		return nil, err
	}
	content, err := secrets.Open(v, ring, r, r.Latest)
	if err != nil {
		return nil, err
	}

	if json.Unmarshal(content[secret.CredentialKey], &spec) != nil { // the error may quote it
		return nil, fmt.Errorf("the secret %q holds none: juju set-credential", r.Label)
	}
	return spec, nil
}
