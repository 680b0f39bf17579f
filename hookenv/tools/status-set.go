package tools

import (
	"context"
	"errors"
	"slices"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
	"bijou/state/text"
)

// checkStatusWord returns a usage error if the word is not a status that a charm can set.
func checkStatusWord(word string) error {
	words := []string{"maintenance", "blocked", "waiting", "active"}
	if !slices.Contains(words, word) {
		return hookenv.UsageErrorf("invalid status %q, expected one of %v", word, words)
	}
	return nil
}

// prepareStatusSet declares the options of status-set, which sets the status of the unit or its service.
func prepareStatusSet(f *hookenv.FlagSet) hookenv.Runner {
	ofService := false
	f.AddBool(&ofService, "set the status of the application, not of the unit", "application")

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
