package tools

import (
	"context"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// closedRanges returns the ranges that close-port closes without --endpoints. These are the range itself, and the same
// range for every endpoint for which it is open.
func closedRanges(ctx context.Context, inv *hookenv.Invocation, port hookapi.Port) ([]hookapi.Port, error) {
	ports := []hookapi.Port{port}
	opened, err := inv.Hook.Ports(ctx)
	if err != nil {
		return nil, err
	}

	for _, other := range opened {
		if other.Endpoint != "" && other.IsSameRange(port) {
			ports = append(ports, other)
		}
	}

	return ports, nil
}
