package tools

import (
	"context"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// prepareStatusGet declares the options of status-get, which prints a workload status.
func prepareStatusGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &statusGetter{}
	f.AddBool(&g.data, "also print the message and the data", "include-data")
	f.AddBool(&g.application, "print the status of the application, not of the unit", "application")
	f.AddFormat()
	return g.run
}

// statusGetter is one call of status-get.
type statusGetter struct{ data, application bool }

// run prints the status of the unit, or of its service with --application.
func (g *statusGetter) run(ctx context.Context, inv *hookenv.Invocation) error {
	status, err := inv.Hook.Status(ctx, g.application)
	if err != nil {
		return err
	}

	// Without --include-data, the default format, which is smart, has only the word.
	hasFormat := inv.Format != "" && inv.Format != hookenv.FormatSmart
	if !g.data && !hasFormat {
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

// formatDetails returns the status as a dictionary with the keys that charm libraries read. It includes the message and
// the data with --include-data.
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
