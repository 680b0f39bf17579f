package tools

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
	"bijou/state/secret"
)

func prepareSecretGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &secretGetter{}
	f.Format = hookenv.FormatYAML
	f.AddString(&g.query.Label, "how this unit calls it", "LABEL", "label")
	f.AddBool(&g.query.Peek, "the newest revision, just this time", "peek")
	f.AddBool(&g.query.Refresh, "the newest revision, from now on", "refresh")
	f.AddFormat(hookenv.FormatYAML, hookenv.FormatJSON)
	return g.run
}

type secretGetter struct{ query hookapi.SecretQuery }

// run prints a secret's content, or the one value that the second argument names. KEY#base64 prints a value
// in base64.
func (g *secretGetter) run(ctx context.Context, inv *hookenv.Invocation) (err error) {
	switch {
	case g.query.Peek && g.query.Refresh:
		return hookenv.UsageErrorf("specify one of --peek or --refresh but not both")
	case len(inv.Args) == 0 && g.query.Label == "":
		return hookenv.UsageErrorf("require either a secret URI or label")
	}

	// With a label the first argument may be a key instead of an id.
	id, err := takeSecretID(inv)
	if id == "" && g.query.Label == "" {
		return err
	}
	g.query.ID = id
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}

	content, err := inv.Hook.SecretContent(ctx, g.query)
	if err != nil {
		return err
	}
	if len(inv.Args) == 0 {
		return inv.Print(secret.Content(content).Texts())
	}

	name, form, _ := strings.Cut(inv.Args[0], "#")
	value, there := content[name]
	switch {
	case !there || form != "" && form != "base64":
		return fmt.Errorf("secret key value %q not found", inv.Args[0])
	case form == "base64":
		value = []byte(base64.StdEncoding.EncodeToString(value))
	}

	if inv.Format == hookenv.FormatJSON && !utf8.Valid(value) {
		return fmt.Errorf("secret key value %q is not UTF-8, which JSON needs: get %q", name, name+"#base64")
	}
	if inv.Format == hookenv.FormatJSON {
		return inv.Print(string(value))
	}

	fmt.Fprintf(&inv.Stdout, "%s\n", value)
	return nil
}

func prepareSecretIDs(f *hookenv.FlagSet) hookenv.Runner {
	f.AddFormat(hookenv.FormatSmart, hookenv.FormatJSON, hookenv.FormatYAML)

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		if err := inv.CheckUnitCall(0); err != nil {
			return err
		}
		infos, err := inv.Hook.SecretInfos(ctx)
		if err != nil {
			return err
		}

		ids := []string{}
		for _, info := range infos {
			ids = append(ids, info.ID)
		}

		return inv.Print(ids)
	}
}

func prepareSecretInfoGet(f *hookenv.FlagSet) hookenv.Runner {
	label := ""
	f.Format = hookenv.FormatYAML
	f.AddString(&label, "how this charm calls it", "LABEL", "label")
	f.AddFormat(hookenv.FormatYAML, hookenv.FormatJSON)
	return func(ctx context.Context, inv *hookenv.Invocation) error { return printSecretInfo(ctx, inv, label) }
}

// printSecretInfo prints the metadata of one secret that the unit manages, found by its id or its owner's
// label.
func printSecretInfo(ctx context.Context, inv *hookenv.Invocation, label string) (err error) {
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

	i := slices.IndexFunc(infos, func(s hookapi.SecretInfo) bool {
		return s.ID == id || id == "" && s.Label == label
	})
	if i < 0 {
		return fmt.Errorf("secret %q not found", id+label)
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

func prepareCredentialGet(f *hookenv.FlagSet) hookenv.Runner {
	f.AddFormat(hookenv.FormatSmart, hookenv.FormatJSON, hookenv.FormatYAML)

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		spec, err := inv.Hook.CloudSpec(ctx)
		if inv.FormatFor(spec) != hookenv.FormatJSON {
			spec = cloudSpecForYAML(spec)
		}
		if err != nil {
			err = fmt.Errorf("cannot access cloud credentials: %w", err)
		}

		return inv.PrintResult(spec, err)
	}
}

// cloudSpecForYAML returns the specification with the names of Juju's YAML, which differ from those of its
// JSON. YAML shows empty values, too.
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
