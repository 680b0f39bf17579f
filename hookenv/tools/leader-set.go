package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

// setLeaderSettings writes leader settings. An empty value removes a key.
func setLeaderSettings(ctx context.Context, inv *hookenv.Invocation, changes map[string]*string) error {
	for key, value := range changes {
		if *value == "" { // withPairs passes no nil value
			changes[key] = nil
		}
	}

	if err := inv.Hook.SetLeaderSettings(ctx, changes); err != nil {
		return fmt.Errorf("cannot write leadership settings: %w", err)
	}

	return nil
}
