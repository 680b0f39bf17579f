package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

// getResource prints the path of a resource's file. It downloads the file if necessary.
func getResource(ctx context.Context, inv *hookenv.Invocation) error {
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}
	path, err := inv.Hook.Resource(ctx, inv.Args[0])
	if err != nil {
		return err
	}

	// Do not print a newline, since charm libraries use the output as a path without trimming it.
	fmt.Fprint(&inv.Stdout, path)
	return nil
}
