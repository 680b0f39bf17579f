package tools

import (
	"context"

	"bijou/hookenv"
)

func listStorage(_ context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption) error {
	return o.Print(inv, []string{})
}
