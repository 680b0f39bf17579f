package multicall

import (
	"context"
	"os"

	"bijou/agent"
	"bijou/agent/do"
	"bijou/hookenv/hookapi"
	"bijou/multicall/applet"
	"bijou/multicall/juju"
	"bijou/state"
)

func runAsHook(ctx context.Context, s *state.State, c juju.HookCommand) (juju.HookOutcome, error) {
	binary, err := applet.ExecutablePath()
	if err != nil {
		return juju.HookOutcome{Exit: 1}, err
	}
	outcome, err := do.Run(ctx, do.Options{
		State:      s,
		Unit:       c.Unit,
		Relation:   c.Relation,
		Dialect:    hookapi.Dialect(c.Dialect),
		Command:    c.Command,
		Shell:      os.Getenv("SHELL"),
		Streams:    do.Streams{In: c.Streams.In, Out: c.Streams.Out, Err: c.Streams.Err},
		Environ:    append(os.Environ(), c.Environ...),
		Links:      do.Links{Names: append(hookToolNames(), "juju"), Binary: binary},
		Folder:     agent.DoFolder,
		MachineDir: c.MachineDir,
	})
	return juju.HookOutcome(outcome), err
}
