package juju

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/backoff"
)

type upgradeModelCmd struct {
	AllowDowngrade bool          `help:"Allow an older version."`
	DryRun         bool          `help:"Only print the changes."`
	Wait           time.Duration `default:"1m" help:"Wait at most this long for the agents; 0 does not wait."`
}

// Run installs this binary as the environment's tools, and waits for the agents to run it, at most for the time of
// --wait. With --dry-run it only prints the changes.
func (c upgradeModelCmd) Run(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}
	if err := c.refuseDowngrade(e, o.parts.Version); err != nil {
		return err
	}

	if c.DryRun {
		return c.printPlan(o, e)
	}

	return o.openState(e, func(s *state.State) error {
		oldTools := e.Tools
		e.Tools, err = home.InstallTools(e.Dir, o.parts.Version, o.parts.Applets)
		if err != nil {
			return err
		}
		if err := c.publishTools(o, s, e); err != nil {
			return err
		}

		if oldTools == e.Tools {
			o.note("model %q already runs %s", e.Name, e.Tools)
		} else {
			o.note("model %q switches from %s to %s", e.Name, oldTools, e.Tools)
		}

		o.warnIfDown(e)
		if err := c.awaitAgents(o, s, e.Tools); err != nil {
			return err
		}

		// This removes tools that are not in use. It keeps the old tools, since an agent may still be about to
		// switch.
		return o.parts.SweepTools(e, oldTools)
	})
}

// printPlan prints the changes that the command would make.
func (c upgradeModelCmd) printPlan(o *operator, e home.Environment) error {
	tools, err := home.ToolsName(o.parts.Version)
	if err != nil {
		return err
	}

	if tools == e.Tools {
		fmt.Fprintf(o.streams.Out, "model %q already runs %s\n", e.Name, tools)
		return nil
	}
	fmt.Fprintf(o.streams.Out, "model %q would switch from %s to %s\n", e.Name, e.Tools, tools)
	return nil
}

// publishTools records the tools that all agents must run from now on, in the state and then in environment.yaml.
// Agents on other hosts download the tools from the state. If the state is a file on this host, there are no such
// agents.
func (c upgradeModelCmd) publishTools(o *operator, s *state.State, e home.Environment) error {
	tools := state.Tools{Name: e.Tools, Added: time.Now().UTC()}
	hasOtherHosts := !strings.HasPrefix(e.State, "sqlite:")
	if hasOtherHosts {
		binary, err := os.Open(filepath.Join(e.ToolsDir(), "bijou"))
		if err != nil {
			return fmt.Errorf("cannot read the binary: %w", err)
		}
		defer binary.Close()

		tools.SHA256, tools.Size, err = s.PutFile(o.ctx, binary)
		if err != nil {
			return fmt.Errorf("cannot store the binary for other hosts: %w", err)
		}
	}

	err := s.Update(o.ctx, func(tx *state.Tx) error {
		if hasOtherHosts {
			if err := tx.AddTools(tools); err != nil {
				return err
			}
		}
		return tx.SetTools(e.Tools)
	})
	if err != nil {
		return err
	}

	// The state comes first. If the command is interrupted before Save, an agent of this host still records the new
	// tools in environment.yaml when it switches.
	return e.Save()
}

// refuseDowngrade returns an error if this binary is older than the environment's binary, unless the operator
// allows a downgrade.
func (c upgradeModelCmd) refuseDowngrade(e home.Environment, version string) error {
	// The name of tools has the form VERSION-SHA8. Without a name, current is empty, and no version is older.
	current := e.Tools[:max(0, strings.LastIndex(e.Tools, "-"))]
	if c.AllowDowngrade || !isOlder(version, current) {
		return nil
	}

	return console.Hint(fmt.Errorf("cannot upgrade model %q: it runs version %s, and this binary is %s",
		e.Name, current, version),
		"run the newer binary, or give --allow-downgrade")
}

// isOlder reports whether version is older than other. It compares the versions number by number. A version has a
// form such as 0.2.0 or 2026.11.24-1.
func isOlder(version, other string) bool {
	numbers := func(version string) []string {
		return strings.FieldsFunc(version, func(r rune) bool { return r == '.' || r == '-' })
	}
	return slices.CompareFunc(numbers(version), numbers(other), state.CompareIDs) < 0
}

// awaitAgents waits until the agents run the tools, at most for the time of --wait. It returns no error for
// agents that have not switched by then, since an agent switches only between hooks.
func (c upgradeModelCmd) awaitAgents(o *operator, s *state.State, tools string) error {
	ctx, cancel := context.WithTimeout(o.ctx, c.Wait)
	defer cancel()
	seen := map[string]bool{} // whether a machine's agent was present in any read
	const progress = "machines switched"
	// This removes the progress bar.
	defer func() { o.reportSteps(state.Steps{What: progress, Done: 1, Total: 1}) }()

	for {
		late, err := state.Read(o.ctx, s, func(v *state.View) ([]string, error) {
			return lateMachines(v, tools, seen)
		})
		if err != nil {
			return err
		}
		if len(late) == 0 {
			return nil
		}

		// Machines whose agents were never present do not count in the progress.
		maps.DeleteFunc(seen, func(_ string, present bool) bool { return !present })
		o.reportSteps(state.Steps{What: progress, Done: len(seen) - len(late), Total: len(seen)})
		if backoff.Sleep(ctx, 100*time.Millisecond) == nil {
			continue
		}

		// Either the operator has interrupted the command, or the time of --wait has passed.
		if o.ctx.Err() != nil {
			return o.ctx.Err()
		}

		o.note("machine %s still runs the old binary; it switches once its running hooks, if any, have ended",
			strings.Join(late, ", "))
		return nil
	}
}

// lateMachines returns the machines whose agents do not run the tools yet, among the machines whose agents are
// present or were present in an earlier call. An agent is absent for a moment while it switches. lateMachines
// records the present agents in seen.
func lateMachines(v *state.View, tools string, seen map[string]bool) (late []string, err error) {
	machines, err := v.Machines()
	// If the machines cannot be read, there are none, and the error is returned below.
	for _, m := range machines {
		present, presentErr := v.IsPresent(state.MachineAgent(m.ID))
		err = errors.Join(err, presentErr)
		seen[m.ID] = seen[m.ID] || present
		if seen[m.ID] && m.Tools != tools {
			late = append(late, m.ID)
		}
	}

	return late, err
}
