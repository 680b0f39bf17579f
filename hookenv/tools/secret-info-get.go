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

func prepareSecretInfoGet(f *hookenv.FlagSet) hookenv.Runner {
	label := ""
	f.Format = hookenv.FormatYAML
	f.AddString(&label, "the label of the secret in this charm", "LABEL", "label")
	f.AddFormat(hookenv.FormatYAML, hookenv.FormatJSON)
	return func(ctx context.Context, inv *hookenv.Invocation) error { return printSecretInfo(ctx, inv, label) }
}

// printSecretInfo prints the metadata of one secret that the unit manages, found by its id or its owner's
// label.
func printSecretInfo(ctx context.Context, inv *hookenv.Invocation, label string) (err error) {
	if label != "" && len(inv.Args) > 0 {
		return hookenv.UsageErrorf("specify either URI or label but not both")
	}

	id := ""
	if label == "" {
		id, err = takeOnlySecretID(inv)
	} else {
		err = inv.RequireLocalUnit()
	}
	if err != nil {
		return err
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

	var access []any
	for _, g := range s.Grants {
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

	if access != nil {
		shown["access"] = access
	}
	return shown
}
