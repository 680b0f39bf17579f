package juju

import (
	"maps"
	"slices"
	"strings"

	"bijou/state"
)

type attachResourceCmd struct {
	Service   string   `arg:"" name:"application" help:"The application."`
	Resources []string `arg:"" name:"name=file" help:"Resources of its charm, each with a file."`
}

// Run attaches the files to the service as the next versions of its resources, all of them or none.
func (c attachResourceCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		ch, err := state.Read(o.ctx, s, func(v *state.View) (state.Charm, error) { return charmOf(v, c.Service) })
		if err != nil {
			return err
		}

		files, err := parseResourceFiles(&ch.Meta, c.Resources)
		if err != nil {
			return err
		}
		stored, err := o.storeResources(s, files)
		if err != nil {
			return err
		}

		err = s.Update(o.ctx, func(tx *state.Tx) error { return putResources(tx, c.Service, stored) })
		if err != nil {
			return err
		}

		o.note("%s has new files: %s", c.Service, strings.Join(slices.Sorted(maps.Keys(files)), ", "))
		return nil
	})
}
