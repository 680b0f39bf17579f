package tools

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
	"bijou/state/secret"
)

// prepareSecretGet declares the options of secret-get, which prints the content of a secret.
func prepareSecretGet(f *hookenv.FlagSet) hookenv.Runner {
	g := &secretGetter{}
	f.Format = hookenv.FormatYAML
	f.AddString(&g.query.Label, "the label of this unit for the secret", "LABEL", "label")
	f.AddBool(&g.query.Peek, "print the newest revision, only this time", "peek")
	f.AddBool(&g.query.Refresh, "print the newest revision, and use it from now on", "refresh")
	f.AddFormat(hookenv.FormatYAML, hookenv.FormatJSON)
	return g.run
}

// secretGetter is one call of secret-get.
type secretGetter struct{ query hookapi.SecretQuery }

// run prints the content of a secret, or the value of one key if an argument names it. The secret's id comes before the
// key, and is optional with --label. KEY#base64 prints the value in base64.
func (g *secretGetter) run(ctx context.Context, inv *hookenv.Invocation) error {
	switch {
	case g.query.Peek && g.query.Refresh:
		return hookenv.UsageErrorf("specify one of --peek or --refresh but not both")
	case len(inv.Args) == 0 && g.query.Label == "":
		return hookenv.UsageErrorf("require either a secret URI or label")
	}

	// With --label, the first argument can be a key instead of an id, so an error about the id is ignored. A
	// missing unit is an error of CheckUnitCall below.
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

	// takeSecretID removes the id, so an argument that is left is the key.
	if len(inv.Args) == 0 {
		return inv.Print(secret.Content(content).Texts())
	}

	return printSecretValue(inv, content, inv.Args[0])
}

// printSecretValue prints the value of a key in the secret's content, in base64 for KEY#base64. In JSON it prints
// the value as a string, and otherwise it prints the value alone.
func printSecretValue(inv *hookenv.Invocation, content map[string][]byte, key string) error {
	name, encoding, _ := strings.Cut(key, "#")
	isKnownEncoding := encoding == "" || encoding == "base64"
	value, isSet := content[name]
	if !isSet || !isKnownEncoding {
		return fmt.Errorf("secret key value %q not found", key)
	}

	if encoding == "base64" {
		value = []byte(base64.StdEncoding.EncodeToString(value))
	}

	if inv.Format != hookenv.FormatJSON {
		fmt.Fprintf(&inv.Stdout, "%s\n", value)
		return nil
	}
	if !utf8.Valid(value) {
		return fmt.Errorf("secret key value %q is not UTF-8, which JSON needs: get %q", name, name+"#base64")
	}
	return inv.Print(string(value))
}
