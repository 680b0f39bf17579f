package tools

import (
	"context"
	"fmt"
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

// cloudSpecForYAML has the names of Juju's YAML, which are not those of its JSON, and what is empty.
func cloudSpecForYAML(spec map[string]any) map[string]any {
	shown := map[string]any{
		"region": "", "endpoint": "", "identityendpoint": "", "storageendpoint": "",
		"cacertificates": []any{}, "skiptlsverify": false, "iscontrollercloud": false,
	}
	for name, value := range spec {
		shown[strings.ReplaceAll(name, "-", "")] = value
	}
	given, _ := spec["credential"].(map[string]any)
	shown["credential"] = map[string]any{"authtype": given["auth-type"], "attributes": given["attrs"], "redacted": []any{}}
	return shown
}
