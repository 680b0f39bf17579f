package tools

import (
	"context"
	"errors"
	"slices"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

func prepareStatusSet(f *hookenv.FlagSet) hookenv.Runner {
	ofService := false
	f.AddBool(&ofService, "set the status of the service, not of the unit", "application")
	return func(ctx context.Context, inv *hookenv.Invocation) error { return setStatus(ctx, inv, ofService) }
}

func setStatus(ctx context.Context, inv *hookenv.Invocation, ofService bool) error {
	if len(inv.Args) == 0 {
		return hookenv.UsageErrorf("invalid args, require <status> [message]")
	}
	words := []string{"maintenance", "blocked", "waiting", "active"}
	if !slices.Contains(words, inv.Args[0]) {
		return hookenv.UsageErrorf("invalid status %q, expected one of %v", inv.Args[0], words)
	}
	if err := inv.CheckUnitCall(2); err != nil {
		return err
	}
	status := hookapi.Status{Status: inv.Args[0]}
	if len(inv.Args) > 1 {
		status.Message = escapeInvalidUTF8(inv.Args[1])
	}
	err := inv.Hook.SetStatus(ctx, ofService, status)
	if errors.Is(err, hookapi.ErrNotLeader) {
		return errors.New("this unit is not the leader")
	}
	return err
}
