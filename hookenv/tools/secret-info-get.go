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
	o, label := &hookenv.FormatOption{Format: hookenv.FormatYAML}, ""
	f.AddString(&label, "how this charm calls it", "LABEL", "label")
	o.AddFlagWith(f, hookenv.FormatYAML, hookenv.FormatJSON)
	return func(ctx context.Context, inv *hookenv.Invocation) error { return printSecretInfo(ctx, inv, o, label) }
}

func printSecretInfo(ctx context.Context, inv *hookenv.Invocation, o *hookenv.FormatOption, label string) (err error) {
	id := ""
	switch {
	case label != "" && len(inv.Args) > 0:
		return hookenv.UsageErrorf("specify either URI or label but not both")
	case label == "":
		id, err = takeOnlySecretID(inv)
	default:
		err = inv.RequireLocalUnit()
	}
	if err != nil {
		return err
	}
	infos, err := inv.Hook.SecretInfos(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(infos, func(s hookapi.SecretInfo) bool { return s.ID == id || id == "" && s.Label == label })
	if i < 0 {
		return fmt.Errorf("secret %q not found", id+label)
	}
	return o.Print(inv, map[string]any{infos[i].ID: describeSecret(infos[i])})
}

func describeSecret(s hookapi.SecretInfo) map[string]any {
	shown := map[string]any{
		"revision": s.Revision, "label": s.Label, "owner": "application", "rotation": cmp.Or(s.Rotation, "never"),
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
		access = append(access, map[string]any{"target": target, "scope": fmt.Sprintf("relation-%d", g.Relation), "role": "view"})
	}
	if access != nil {
		shown["access"] = access
	}
	return shown
}
