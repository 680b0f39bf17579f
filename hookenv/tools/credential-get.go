package tools

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"bijou/hookenv"
)

func prepareCredentialGet(f *hookenv.FlagSet) hookenv.Runner {
	o := &hookenv.FormatOption{}
	o.AddFlagWith(f, hookenv.FormatSmart, hookenv.FormatJSON, hookenv.FormatYAML)
	return func(ctx context.Context, inv *hookenv.Invocation) error {
		spec, err := inv.Hook.CloudSpec(ctx)
		if err != nil {
			return fmt.Errorf("cannot access cloud credentials: %w", err)
		}
		if o.FormatFor(inv, spec) != hookenv.FormatJSON {
			spec = cloudSpecForYAML(spec)
		}
		return o.Print(inv, spec)
	}
}

// cloudSpecForYAML has other names than JSON has, and whatever is empty, as Juju's: charms read both.
func cloudSpecForYAML(spec map[string]any) map[string]any {
	shown := map[string]any{
		"region": "", "endpoint": "", "identityendpoint": "", "storageendpoint": "",
		"cacertificates": []any{}, "skiptlsverify": false, "iscontrollercloud": false,
	}
	for name, value := range spec {
		shown[strings.ReplaceAll(name, "-", "")] = value
	}
	if credential, ok := spec["credential"].(map[string]any); ok {
		attributes := map[string]any{}
		if set, ok := credential["attrs"].(map[string]any); ok {
			maps.Copy(attributes, set)
		}
		shown["credential"] = map[string]any{"authtype": credential["auth-type"], "attributes": attributes, "redacted": []any{}}
	}
	return shown
}
