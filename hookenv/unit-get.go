package hookenv

import "context"

func unitGet() Tool {
	return Tool{
		Name:     "unit-get",
		Summary:  "print the unit's address",
		Usage:    "private-address|public-address",
		Examples: []string{"unit-get private-address", "unit-get --format=json public-address"},
		prepare:  printer(printAddress),
	}
}

func printAddress(ctx context.Context, inv *invocation, o *output) error {
	if len(inv.args) == 0 {
		return usagef("no setting specified")
	}
	setting := inv.args[0]
	if setting != "private-address" && setting != "public-address" {
		return usagef("unknown setting %q", setting)
	}
	if err := inv.checkUnitCall(1); err != nil {
		return err
	}
	address, err := inv.hook.Address(ctx, setting == "public-address")
	if err != nil {
		return err
	}
	return o.print(inv, address)
}
