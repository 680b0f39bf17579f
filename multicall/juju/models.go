package juju

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/text"
)

type modelsCmd struct {
	Format     string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
}

// Run lists the environments. The table marks the current one with a star, and has a row even for an environment
// that cannot be read. In any other format, Run returns an error if the record of an environment cannot be read.
func (c modelsCmd) Run(o *operator) error {
	names, err := o.home.Names()
	if err != nil {
		return err
	}

	current := o.home.Current()
	if c.Format == "tabular" {
		return o.printModels(names, current)
	}

	infos := []modelInfo{}
	for _, name := range names {
		e, err := o.home.Environment(name)
		if err != nil {
			return err
		}
		infos = append(infos, newModelInfo(e))
	}

	return o.encode(c.Format, map[string]any{"models": infos, "current-model": current})
}

// modelRow is an environment in the list.
type modelRow struct {
	provider, status string
	machines, units  string // empty if the store cannot be read
	store            string
	message          string // why the store cannot be read
}

// printModels prints a table of the environments, with a star after the current one. It reads all of them at
// once, since each may be slow. Without environments, it prints only a hint.
func (o *operator) printModels(names []string, current string) error {
	if len(names) == 0 {
		o.note("there is no model; to create one: juju bootstrap")
		return nil
	}

	rows := make([]modelRow, len(names))
	var reading sync.WaitGroup
	for i, name := range names {
		reading.Go(func() { rows[i] = o.readModel(name) })
	}
	reading.Wait()

	t := console.NewTable("MODEL", "CLOUD", "STATUS", "MACHINES", "UNITS", "STORE", "MESSAGE")
	t.PaintOnly("STATUS")
	t.Spare("MESSAGE") // left out if all environments can be read
	for i, r := range rows {
		name := names[i]
		if name == current {
			name += " *"
		}
		// AddWhole does not cut the last cell, the message.
		t.AddWhole(wordColour(r.status), console.NoTail,
			name, r.provider, r.status, r.machines, r.units, r.store, r.message)
	}

	return t.Write(o.streams.Out, console.CanColour(o.streams.Out))
}

// modelTimeout is how long the list waits for a store.
const modelTimeout = 2 * time.Second

// readModel reads one environment for the list. If the record or the store cannot be read, the row has the status
// error and the reason. An environment that is being removed has the status destroying. For any other
// environment, the status says whether the background process runs. It is available if bijou cannot find out.
func (o *operator) readModel(name string) modelRow {
	e, err := o.home.Environment(name)
	if err != nil {
		return modelRow{status: "error", message: text.FirstLine(err.Error())}
	}

	r := modelRow{provider: e.Provider, status: "available", store: text.HideSecrets(e.State)}
	if e.Phase == home.Removing {
		// The store may be gone already.
		r.status = "destroying"
		return r
	}
	if pid, err := o.parts.Processes.Running(e.MachineDir("0")); pid == 0 && err == nil {
		r.status = "stopped"
	}

	ctx, cancel := context.WithTimeout(o.ctx, modelTimeout)
	defer cancel()

	s, err := state.Open(ctx, e.State)
	if err != nil {
		return r.unreadable(err)
	}
	defer s.Close()

	err = s.View(ctx, func(v *state.View) error {
		machines, err := v.Machines()
		if err != nil {
			return err
		}
		units, err := v.Units("") // of all services
		if err != nil {
			return err
		}

		r.machines = strconv.Itoa(len(machines))
		r.units = strconv.Itoa(len(units))
		return nil
	})
	if err != nil {
		return r.unreadable(err)
	}
	return r
}

// unreadable returns the row for an environment whose store cannot be read. err is the reason.
func (r modelRow) unreadable(err error) modelRow {
	r.status = "error"
	r.machines = ""
	r.units = ""
	r.message = strings.TrimSpace(text.HideSecrets(text.FirstLine(err.Error())))
	return r
}
