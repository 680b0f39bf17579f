package tools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// prepareSecretInfoGet declares the options of secret-info-get, which prints the metadata of a secret.
func prepareSecretInfoGet(f *hookenv.FlagSet) hookenv.Runner {
	label := ""
	f.Format = hookenv.FormatYAML
	f.AddString(&label, "the label of the secret in this charm", "LABEL", "label")
	f.AddFormat(hookenv.FormatYAML, hookenv.FormatJSON)
	return func(ctx context.Context, inv *hookenv.Invocation) error { return printSecretInfo(ctx, inv, label) }
}

// printSecretInfo prints the metadata of one secret that the unit manages. It finds the secret by the id in the first
// argument or, if label is not empty, by the label that the owner has given to the secret.
func printSecretInfo(ctx context.Context, inv *hookenv.Invocation, label string) error {
	if label != "" && len(inv.Args) > 0 {
		return hookenv.UsageErrorf("specify either URI or label but not both")
	}
	if label != "" { // for an id, takeOnlySecretID checks this
		if err := inv.RequireLocalUnit(); err != nil {
			return err
		}
	}

	id := ""
	if label == "" {
		var err error
		if id, err = takeOnlySecretID(inv); err != nil {
			return err
		}
	}

	infos, err := inv.Hook.SecretInfos(ctx)
	if err != nil {
		return err
	}

	i := slices.IndexFunc(infos, func(s hookapi.SecretInfo) bool {
		return s.ID == id || id == "" && s.Label == label
	})
	if i < 0 {
		return fmt.Errorf("secret %q not found", id+label) // one of the two is empty
	}

	return inv.Print(map[string]any{infos[i].ID: describeSecret(infos[i])})
}

// describeSecret returns a secret's metadata under the keys that Juju prints.
func describeSecret(s hookapi.SecretInfo) map[string]any {
	shown := map[string]any{
		"revision": s.Revision,
		"label":    s.Label,
		"owner":    "application",
		"rotation": cmp.Or(s.Rotation, "never"),
	}
	if s.OfUnit {
		shown["owner"] = "unit"
	}
	if s.Description != "" {
		shown["description"] = s.Description
	}

	for name, at := range map[string]time.Time{"expiry": s.Expires, "rotates": s.Rotates} {
		if !at.IsZero() {
			shown[name] = at.UTC().Format(time.RFC3339)
		}
	}

	if len(s.Grants) > 0 {
		shown["access"] = describeGrants(s.Grants)
	}
	return shown
}

// describeGrants returns the grants of a secret in the form that Juju prints.
func describeGrants(grants []hookapi.SecretGrant) (access []any) {
	for _, g := range grants {
		target := "application-" + g.Service
		if g.Unit != "" {
			target = "unit-" + strings.Replace(g.Unit, "/", "-", 1)
		}

		access = append(access, map[string]any{
			"target": target,
			"scope":  fmt.Sprintf("relation-%d", g.Relation),
			"role":   "view",
		})
	}

	return access
}
