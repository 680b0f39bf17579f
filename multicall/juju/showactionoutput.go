package juju

import "bijou/state"

type showActionOutputCmd struct {
	ID     int      `arg:"" help:"The action's id."`
	Wait   waitFlag `placeholder:"TIME" help:"Wait for its end; --wait=30s: not longer."`
	Format string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
}

// Run prints the action with its output and results.
func (c showActionOutputCmd) Run(o *operator) error {
	return o.openChosen(func(s *state.State) error {
		one := awaitedAction{action: state.Action{ID: c.ID}}
		err := s.View(o.ctx, func(v *state.View) (err error) {
			if one.action, err = v.Action(c.ID); err == nil {
				one.output, err = v.Output(one.action)
			}
			return err
		})
		if err != nil {
			return err
		}
		if c.Wait.set {
			return awaitActions(o, s, []state.Action{{ID: c.ID}}, c.Wait.timeout, c.Format)
		}

		return printActions(o, []*awaitedAction{&one}, c.Format)
	})
}
