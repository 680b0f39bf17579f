package juju

import (
	"context"
	"errors"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/dashboard"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/status"
)

type dashboardCmd struct{ dashboard.Flags }

// Run serves the page until the command is interrupted. The page also shows the boot servers if $NECO_STATE is
// set. If Run cannot open their state, it prints a warning, and serves the page without them.
func (c dashboardCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		e, err := o.newDashboard(s)
		if err != nil {
			return err
		}

		fleet, err := o.parts.OpenFleet(o.ctx, o.streams) // the boot servers' state, or nil without $NECO_STATE
		if err != nil {
			o.note("warning: the page does not show the boot servers: %v", err)
		}

		return dashboard.Serve(o.ctx, dashboard.Options{
			Streams:     o.streams,
			Flags:       c.Flags,
			Environment: e,
			Fleet:       fleet,
		})
	})
}

// OpenEnvironment opens the environment that commands use without -e, for the page. It returns nil and no error if
// there is no such environment.
func OpenEnvironment(ctx context.Context, s console.Streams, parts Parts) (*dashboard.Environment, error) {
	h, err := home.Find()
	o := &operator{ctx: ctx, streams: s, home: h, parts: parts}
	e, chooseErr := h.Choose("")
	// Without a home directory there is no environment either, so ErrNoEnvironment hides the error of Find.
	err = errors.Join(err, chooseErr)
	if errors.Is(err, home.ErrNoEnvironment) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	opened, err := state.Open(ctx, e.State)
	if err != nil {
		return nil, err
	}

	d, err := o.newDashboard(opened)
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return d, nil
}

// newDashboard returns the chosen environment in the form that the page in a browser needs. s is its open state.
func (o *operator) newDashboard(s *state.State) (*dashboard.Environment, error) {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return nil, err
	}

	storeKind, _, _ := strings.Cut(e.State, ":")
	return &dashboard.Environment{
		Name:    e.Name,
		Version: o.parts.Version,
		Store:   storeKind,
		State:   s,
		Explain: func(u status.Unit) string { return screenReason(u).String() },
		Owed:    o.parts.Owed,
	}, nil
}
