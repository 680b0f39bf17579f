package hookenv

import (
	"context"
	"fmt"
)

func resourceGet() Tool {
	return Tool{
		Name:     "resource-get",
		Summary:  "print the path of a resource",
		Usage:    "NAME",
		Notes:    "The operator's newest file is fetched if it is not there yet; the path stays the same.",
		Examples: []string{"tar -xf $(resource-get site)"},
		prepare:  noOptions(getResource),
	}
}

func getResource(ctx context.Context, inv *invocation) error {
	if len(inv.args) == 0 {
		return usagef("missing required resource name")
	}
	if err := inv.checkUnitCall(1); err != nil {
		return err
	}
	path, err := inv.hook.Resource(ctx, inv.args[0])
	if err == nil {
		// No end of line: charm libraries open what they hear as it is.
		fmt.Fprint(&inv.stdout, path)
	}
	return err
}
