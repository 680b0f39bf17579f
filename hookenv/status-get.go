package hookenv

import (
	"context"

	"bijou/hookenv/hookapi"
)

func statusGet() Tool {
	return Tool{
		Name:     "status-get",
		Summary:  "print the status of the workload",
		Usage:    "[--include-data] [--application]",
		Notes:    "In the smart format it prints the word alone, unless --include-data asks for more.",
		Examples: []string{"status-get", "status-get --format=json --include-data"},
		prepare: func(f *flagSet) runner {
			g := &statusGetter{}
			f.addBool(&g.data, "print message and data too", "include-data")
			f.addBool(&g.application, "print the status of the service, not of the unit", "application")
			g.output.addFlag(f)
			return g.run
		},
	}
}

type statusGetter struct {
	output
	data, application bool
}

func (g *statusGetter) run(ctx context.Context, inv *invocation) error {
	if err := inv.checkUnitCall(0); err != nil {
		return err
	}
	status, err := inv.hook.Status(ctx, g.application)
	if err != nil {
		return err
	}
	if asked := g.format != "" && g.format != formatSmart; !g.data && !asked {
		return g.print(inv, status.Status)
	}
	details := g.formatDetails(status)
	if !g.application {
		return g.print(inv, details)
	}
	units := map[string]any{}
	for name, unit := range status.Units {
		units[name] = g.formatDetails(unit)
	}
	details["units"] = units
	return g.print(inv, map[string]any{"application-status": details})
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
