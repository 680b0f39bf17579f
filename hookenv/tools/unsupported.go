package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
)

// unsupportedNames lists the tools that do not work here. They are linked all the same: charm
// libraries probe for them and expect one clear error rather than "command not found".
func unsupportedNames() []string {
	return []string{"payload-register", "payload-status-set", "payload-unregister"}
}

func prepareUnsupported(f *hookenv.FlagSet) hookenv.Runner {
	f.AcceptUnknown = true
	return func(_ context.Context, inv *hookenv.Invocation) error { return notSupported(inv.Tool.Name) }
}

func notSupported(name string) error {
	return fmt.Errorf("%s is not supported by this version of bijou: it has no payloads", name)
}
