package tools

import (
	"context"
	"fmt"
	"strings"

	"bijou/hookenv"
)

// prepareCredentialGet declares the options of credential-get, which prints the specification of the cloud.
func prepareCredentialGet(f *hookenv.FlagSet) hookenv.Runner {
	f.AddFormat(hookenv.FormatSmart, hookenv.FormatJSON, hookenv.FormatYAML)

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		spec, err := inv.Hook.CloudSpec(ctx)
		if err != nil {
			return fmt.Errorf("cannot access cloud credentials: %w", err)
		}

		if inv.FormatFor(spec) != hookenv.FormatJSON {
			spec = cloudSpecForYAML(spec)
		}
		return inv.Print(spec)
	}
}

// cloudSpecForYAML returns the specification under the keys of Juju's YAML, which differ from those of its JSON. It
// adds the keys that the specification lacks, with empty values.
func cloudSpecForYAML(spec map[string]any) map[string]any {
	shown := map[string]any{
		"region":            "",
		"endpoint":          "",
		"identityendpoint":  "",
		"storageendpoint":   "",
		"cacertificates":    []any{},
		"skiptlsverify":     false,
		"iscontrollercloud": false,
	}

	for name, value := range spec {
		shown[strings.ReplaceAll(name, "-", "")] = value
	}
	given, _ := spec["credential"].(map[string]any)
	shown["credential"] = map[string]any{
		"authtype":   given["auth-type"],
		"attributes": given["attrs"],
		"redacted":   []any{},
	}

	return shown
}
