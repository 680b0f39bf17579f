package multicall

import (
	"context"
	"fmt"
	"os"
	"time"

	"bijou/agent"
	"bijou/agent/do"
	"bijou/hookenv/hookapi"
	"bijou/multicall/applet"
	"bijou/multicall/juju"
	"bijou/provision/local/process"
	"bijou/state"
)

// strayTimeout is how long a process that a hook has left may take to end.
const strayTimeout = 5 * time.Second

// hooks implements juju.Hooks.
type hooks struct{}

func (hooks) Run(ctx context.Context, s *state.State, c juju.HookCommand) (juju.HookOutcome, error) {
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
		SecretKeys: c.SecretKeys,
	})
	return juju.HookOutcome(outcome), err
}

func (hooks) UnitDir(machineDir, unit string) string { return agent.UnitFolder(machineDir, unit) }

func (hooks) EndStrays(ctx context.Context, word string) error {
	for _, i := range process.FindByEnviron(word) {
		what := process.Describe(i)
		if err := process.Stop(ctx, i, strayTimeout); err != nil {
			return fmt.Errorf("cannot end %s: %w", what, err)
		}
	}
	return nil
}
