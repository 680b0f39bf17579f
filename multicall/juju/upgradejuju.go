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

type upgradeJujuCmd struct {
	AllowDowngrade bool          `help:"Allow a return to an older version."`
	DryRun         bool          `help:"Only print the changes."`
	Wait           time.Duration `default:"1m" help:"Wait this long for the agents; 0 does not wait."`
}

// Run installs the binary and waits for the agents.
func (c upgradeJujuCmd) Run(o *operator) error {
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
		before := e.Tools
		if e.Tools, err = home.InstallTools(e.Dir, o.parts.Version, o.parts.Applets); err != nil {
			return err
		}
		if err := c.publishTools(o, s, e); err != nil {
			return err
		}

		if before == e.Tools {
			o.note("model %q already runs %s", e.Name, e.Tools)
		} else {
			o.note("model %q switches from %s to %s", e.Name, before, e.Tools)
		}

		o.warnIfDown(e)
		if err := c.awaitAgents(o, s, e.Tools); err != nil {
			return err
		}

		return o.parts.SweepTools(e, before)
	})
}

// printPlan prints the changes that the command would make.
func (c upgradeJujuCmd) printPlan(o *operator, e home.Environment) error {
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

// publishTools records the tools that all agents must run from now on. Agents of other hosts download them
// from the state. If the state is a file of this host, there are no such agents.
func (c upgradeJujuCmd) publishTools(o *operator, s *state.State, e home.Environment) error {
	kept := state.Tools{Name: e.Tools, Added: time.Now().UTC()}
	shared := strings.HasPrefix(e.State, "sqlite:")
	if !shared {
		binary, err := os.Open(filepath.Join(e.ToolsDir(), "bijou"))
		if err != nil {
			return fmt.Errorf("cannot read the binary: %w", err)
		}
		defer binary.Close()
		if kept.SHA256, kept.Size, err = s.PutFile(o.ctx, binary); err != nil {
			return fmt.Errorf("cannot keep the binary for other hosts: %w", err)
		}
	}

	err := s.Update(o.ctx, func(tx *state.Tx) error {
		if shared {
			return tx.SetTools(e.Tools)
		}
		if err := tx.AddTools(kept); err != nil {
			return err
		}

		return tx.SetTools(e.Tools)
	})
	if err != nil {
		return err
	}

	return e.Save() // after the order: an agent that follows it notes the same by itself
}

// refuseDowngrade returns an error if this binary is older than the one that the environment runs, unless
// the operator allows it.
func (c upgradeJujuCmd) refuseDowngrade(e home.Environment, version string) error {
	now := e.Tools[:max(0, strings.LastIndex(e.Tools, "-"))] // VERSION-SHA8
	if c.AllowDowngrade || !isOlder(version, now) {
		return nil
	}

	return console.Hint(fmt.Errorf("cannot upgrade model %q: it runs version %s, and this binary is %s",
		e.Name, now, version),
		"call the newer binary, or give --allow-downgrade")
}

// isOlder reports whether a version is older than another one, number by number. Versions are as .ci/release
// takes them: 0.2.0, or 2026.11.24-1.
func isOlder(version, than string) bool {
	numbers := func(version string) []string {
		return strings.FieldsFunc(version, func(r rune) bool { return r == '.' || r == '-' })
	}
	return slices.CompareFunc(numbers(version), numbers(than), state.CompareIDs) < 0
}

// awaitAgents waits until the agents run the tools. It does not fail for an agent whose hooks take longer,
// since that agent changes over later.
func (c upgradeJujuCmd) awaitAgents(o *operator, s *state.State, tools string) error {
	ctx, cancel := context.WithTimeout(o.ctx, c.Wait)
	defer cancel()
	seen := map[string]bool{}
	const goneOver = "machines switched"
	defer func() { o.reportSteps(state.Steps{What: goneOver, Done: 1, Total: 1}) }() // or else the bar would stay

	for {
		late, err := state.Read(o.ctx, s, func(v *state.View) ([]string, error) {
			return lateMachines(v, tools, seen)
		})
		if err != nil || len(late) == 0 {
			return err
		}

		maps.DeleteFunc(seen, func(_ string, was bool) bool { return !was })
		o.reportSteps(state.Steps{What: goneOver, Done: len(seen) - len(late), Total: len(seen)})
		if backoff.Sleep(ctx, 100*time.Millisecond) == nil {
			continue
		}
		if o.ctx.Err() != nil {
			return o.ctx.Err()
		}

		o.note("machine %s still runs hooks with the old binary; it switches when they have ended",
			strings.Join(late, ", "))
		return nil
	}
}

// lateMachines returns the machines whose agents do not run the tools yet. These include agents that were
// seen before and are absent now, since an agent that changes over is absent for a moment.
func lateMachines(v *state.View, tools string, seen map[string]bool) (late []string, err error) {
	machines, err := v.Machines()
	for _, m := range machines {
		present, perr := v.IsPresent(state.MachineAgent(m.ID))
		err = errors.Join(err, perr)
		seen[m.ID] = seen[m.ID] || present
		if seen[m.ID] && m.Tools != tools {
			late = append(late, m.ID)
		}
	}

	return late, err
}
