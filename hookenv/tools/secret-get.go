package tools

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
	"bijou/state/secret"
)

func prepareSecretGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &secretGetter{FormatOption: hookenv.FormatOption{Format: hookenv.FormatYAML}}
	f.AddString(&g.query.Label, "how this unit calls it", "LABEL", "label")
	f.AddBool(&g.query.Peek, "the newest revision, just this time", "peek")
	f.AddBool(&g.query.Refresh, "the newest revision, from now on", "refresh")
	g.FormatOption.AddFlagWith(f, hookenv.FormatYAML, hookenv.FormatJSON)
	return g.run
}

type secretGetter struct {
	hookenv.FormatOption
	query hookapi.SecretQuery
}

func (g *secretGetter) run(ctx context.Context, inv *hookenv.Invocation) (err error) {
	switch {
	case g.query.Peek && g.query.Refresh:
		return hookenv.UsageErrorf("specify one of --peek or --refresh but not both")
	case len(inv.Args) == 0 && g.query.Label == "":
		return hookenv.UsageErrorf("require either a secret URI or label")
	}
	id, err := takeSecretID(inv)
	if g.query.ID = id; id == "" && g.query.Label == "" {
		return err // with a label the first argument may be a key
	}
	if err := inv.CheckUnitCall(1); err != nil {
		return err
	}
	content, err := inv.Hook.SecretContent(ctx, g.query)
	if err != nil {
		return err
	}
	if len(inv.Args) == 0 {
		return g.Print(inv, secret.Content(content).Texts())
	}
	name, form, _ := strings.Cut(inv.Args[0], "#")
	value, there := content[name]
	switch {
	case !there || form != "" && form != "base64":
		return fmt.Errorf("secret key value %q not found", inv.Args[0])
	case form == "base64":
		value = []byte(base64.StdEncoding.EncodeToString(value))
	}
	if g.Format == hookenv.FormatJSON {
		return g.Print(inv, string(value))
	}
	fmt.Fprintf(&inv.Stdout, "%s\n", value)
	return nil
}
