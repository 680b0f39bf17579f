package tools

import (
	"context"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// prepareGoalState declares the options of goal-state, which prints the goals of the local unit's service.
func prepareGoalState(f *hookenv.FlagSet) hookenv.Runner {
	f.AddFormat(hookenv.FormatJSON, hookenv.FormatYAML)
	return printGoals
}

// printGoals prints the units and relations that the local unit's service has or will have.
func printGoals(ctx context.Context, inv *hookenv.Invocation) error {
	goals, err := inv.Hook.Goals(ctx)
	if err != nil {
		return err
	}

	relations := map[string]any{}
	for name, members := range goals.Relations {
		relations[name] = goalDictionary(members)
	}
	return inv.Print(map[string]any{"units": goalDictionary(goals.Units), "relations": relations})
}

// goalDictionary returns each goal as a dictionary with Juju's keys, by the name of its unit or service.
func goalDictionary(goals map[string]hookapi.Goal) map[string]any {
	described := map[string]any{}
	for name, goal := range goals {
		fields := map[string]any{"status": goal.Status}
		if !goal.Since.IsZero() {
			fields["since"] = goal.Since.UTC().Format("2006-01-02 15:04:05Z")
		}
		described[name] = fields
	}

	return described
}
