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
		Examples: []string{"status-get", "status-get --format=json --include-data"},
		prepare: func(f *flagSet) runner {
			g := &statusGetter{}
			f.bool(&g.data, "print message and data too", "include-data")
			f.bool(&g.application, "print the status of the service, not of the unit", "application")
			g.output.declare(f)
			return g.run
		},
	}
}

type statusGetter struct {
	output
	data, application bool
}

func (g *statusGetter) run(ctx context.Context, inv *invocation) error {
	if err := inv.noMore(0); err != nil {
		return err
	}
	if err := inv.local(); err != nil {
		return err
	}
	status, err := inv.hook.Status(ctx, g.application)
	if err != nil {
		return err
	}
	switch {
	case g.application:
		return g.print(inv, map[string]any{"application-status": g.details(status)})
	case g.data:
		return g.print(inv, g.details(status))
	}
	return g.print(inv, status.Status)
}

// details are the keys that charm libraries read.
func (g *statusGetter) details(status hookapi.Status) map[string]any {
	details := map[string]any{"status": status.Status, "message": status.Message}
	if g.data {
		details["status-data"] = map[string]any{}
		if status.Data != nil {
			details["status-data"] = status.Data
		}
	}
	return details
}
