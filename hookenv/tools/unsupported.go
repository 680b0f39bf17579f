package tools

import (
	"context"
	"fmt"
	"strings"

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
	kind, _, _ := strings.Cut(name, "-")
	missing := map[string]string{"payload": "payloads", "storage": "storage"}[kind]
	return fmt.Errorf("%s is not supported by this version of bijou: it has no %s", name, missing)
}

func prepareStorageGet(f *hookenv.FlagSet) hookenv.Runner {
	id, o := "", &hookenv.FormatOption{}
	f.AddString(&id, "which storage", "ID", "s")
	o.AddFlag(f)
	return func(_ context.Context, inv *hookenv.Invocation) error {
		if id == "" {
			return hookenv.UsageErrorf("no storage instance specified")
		}
		if err := inv.LimitArgs(1); err != nil {
			return err
		}
		return notSupported(inv.Tool.Name)
	}
}

func listStorage(_ context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption) error {
	return o.Print(inv, []string{})
}

func addStorage(_ context.Context, inv *hookenv.Invocation) error {
	if len(inv.Args) == 0 {
		return hookenv.UsageErrorf("storage add requires a storage directive")
	}
	return notSupported(inv.Tool.Name)
}
