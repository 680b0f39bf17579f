package tools

import (
	"context"
	"errors"
	"slices"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
	"bijou/state/text"
)

func prepareStatusGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &statusGetter{}
	f.AddBool(&g.data, "print message and data too", "include-data")
	f.AddBool(&g.application, "print the status of the service, not of the unit", "application")
	f.AddFormat()
	return g.run
}

type statusGetter struct{ data, application bool }

func (g *statusGetter) run(ctx context.Context, inv *hookenv.Invocation) error {
	status, err := inv.Hook.Status(ctx, g.application)
	if err != nil {
		return err
	}
	if asked := inv.Format != "" && inv.Format != hookenv.FormatSmart; !g.data && !asked {
		return inv.Print(status.Status)
	}

	details := g.formatDetails(status)
	if !g.application {
		return inv.Print(details)
	}

	units := map[string]any{}
	for name, unit := range status.Units {
		units[name] = g.formatDetails(unit)
	}
	details["units"] = units
	return inv.Print(map[string]any{"application-status": details})
}

// Charm libraries read these keys.
func (g *statusGetter) formatDetails(status hookapi.Status) map[string]any {
	details := map[string]any{"status": status.Status}
	if g.data {
		details["message"] = status.Message
		details["status-data"] = map[string]any{}
		if status.Data != nil {
			details["status-data"] = status.Data
		}
	}

	return details
}

func checkStatusWord(word string) error {
	words := []string{"maintenance", "blocked", "waiting", "active"}
	if !slices.Contains(words, word) {
		return hookenv.UsageErrorf("invalid status %q, expected one of %v", word, words)
	}
	return nil
}

func prepareStatusSet(f *hookenv.FlagSet) hookenv.Runner {
	ofService := false
	f.AddBool(&ofService, "set the status of the service, not of the unit", "application")

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		if err := inv.CheckUnitCall(2); err != nil {
			return err
		}

		status := hookapi.Status{Status: inv.Args[0], Message: text.EscapeInvalid(inv.Arg(1))}
		err := inv.Hook.SetStatus(ctx, ofService, status)
		if errors.Is(err, hookapi.ErrNotLeader) {
			return errors.New("this unit is not the leader")
		}

		return err
	}
}

func setVersion(ctx context.Context, inv *hookenv.Invocation) error {
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}
	return inv.Hook.SetVersion(ctx, text.EscapeInvalid(inv.Args[0]))
}

func prepareGoalState(f *hookenv.FlagSet) hookenv.Runner {
	f.AddFormat(hookenv.FormatJSON, hookenv.FormatYAML)
	return printGoals
}

func printGoals(ctx context.Context, inv *hookenv.Invocation) error {
	goals, err := inv.Hook.Goals(ctx)
	relations := map[string]any{}
	for name, members := range goals.Relations {
		relations[name] = goalDictionary(members)
	}
	return inv.PrintResult(map[string]any{"units": goalDictionary(goals.Units), "relations": relations}, err)
}

func goalDictionary(goals map[string]hookapi.Goal) map[string]any {
	all := map[string]any{}
	for name, goal := range goals {
		one := map[string]any{"status": goal.Status}
		if !goal.Since.IsZero() {
			one["since"] = goal.Since.UTC().Format("2006-01-02 15:04:05Z")
		}
		all[name] = one
	}

	return all
}
