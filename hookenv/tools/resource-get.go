package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

// getResource prints the path of a resource's file, which it downloads if need be.
func getResource(ctx context.Context, inv *hookenv.Invocation) error {
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}
	path, err := inv.Hook.Resource(ctx, inv.Args[0])
	if err != nil {
		return err
	}

	// No end of line: charm libraries open what they hear as it is.
	fmt.Fprint(&inv.Stdout, path)
	return nil
}
