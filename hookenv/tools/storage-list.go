package tools

import (
	"context"

	"bijou/hookenv"
)

func listStorage(_ context.Context, inv *hookenv.Invocation, o *hookenv.Output) error {
	if err := inv.LimitArgs(1); err != nil {
		return err
	}
	return o.Print(inv, []string{})
}
