package tools

import (
	"context"
	"fmt"
	"strconv"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
	"bijou/state/secret"
	"bijou/state/text"
)

func prepareSecretAdd(f *hookenv.FlagSet) hookenv.Runner {
	s := &secretFlags{}
	s.addFlags(f)
	return s.runAdd
}

// secretFlags are the options of secret-add and secret-set.
type secretFlags struct {
	change              hookapi.SecretChange
	expire, owner, file string
}

// addFlags declares the options that describe a secret.
func (s *secretFlags) addFlags(f *hookenv.FlagSet) {
	f.AddString(&s.change.Description, "what it is for", "TEXT", "description")
	f.AddString(&s.expire, "when it expires: a duration (720h) or a time (RFC 3339)", "WHEN", "expire")
	f.AddString(&s.change.Label, "how this charm calls it", "LABEL", "label")
	f.AddString(&s.change.Rotate, "never, hourly, daily, weekly, monthly, quarterly or yearly", "POLICY",
		"rotate")
	f.AddChoice(&s.owner, "whose it is: the application's (default), or the unit's", "owner", "application", "unit")
	f.AddString(&s.file, "a YAML file with keys and values; - is stdin", "FILE", "file")
}

func (s *secretFlags) runAdd(ctx context.Context, inv *hookenv.Invocation) error {
	if err := s.readChange(ctx, inv, inv.Args); err != nil {
		return err
	}
	if s.change.Content == nil {
		return hookenv.UsageErrorf("missing secret value or filename")
	}

	id, err := inv.Hook.AddSecret(ctx, s.owner == "unit", s.change)
	if err != nil {
		return err
	}

	fmt.Fprintf(&inv.Stdout, "%s//%s/%s\n", secret.Scheme, inv.Facts.Model, id)
	return nil
}

// readChange reads the change of a secret from options, file and words. KEY=VALUE words win over the file.
// Its errors never show a value.
func (s *secretFlags) readChange(ctx context.Context, inv *hookenv.Invocation, words []string) (err error) {
	if err := inv.RequireLocalUnit(); err != nil {
		return err
	}

	if err := hookenv.CheckText(s.change.Label); err != nil {
		return hookenv.UsageErrorf("invalid label %q: it is not UTF-8", s.change.Label)
	}

	s.change.Description = text.EscapeInvalid(s.change.Description)
	read := func(path string) ([]byte, error) { return inv.Files.Read(ctx, path) }
	content := secret.Content{}

	if s.file != "" {
		if err := addFile(content, s.file, read); err != nil {
			return err
		}
	}
	if err := content.AddWords(words, read); err != nil {
		return hookenv.UsageErrorf("%v", err)
	}
	if _, err := secret.NextRotation(s.change.Rotate, inv.Now()); err != nil {
		return hookenv.UsageErrorf("%v", err)
	}

	if s.expire != "" {
		s.change.Expires, err = secret.ParseExpiry(s.expire, inv.Now())
		if err != nil {
			return hookenv.UsageErrorf("%v", err)
		}
	}

	if len(content) > 0 {
		s.change.Content = content
	}
	return nil
}

// addFile adds the pairs of a file with a dictionary of texts.
func addFile(content secret.Content, path string, read func(path string) ([]byte, error)) error {
	data, err := read(path)
	if err != nil {
		return err
	}
	pairs, err := hookenv.ParseDictionary(data)
	if err != nil {
		return hookenv.UsageErrorf("%s holds no dictionary of texts", path) // the error may quote it
	}

	for key, value := range pairs {
		if value == nil {
			continue
		}
		if err := content.Add(key, *value, read); err != nil {
			return hookenv.UsageErrorf("%v", err)
		}
	}

	return nil
}

// takeSecretID takes the first argument, the secret's id in any of its forms.
func takeSecretID(inv *hookenv.Invocation) (id string, err error) {
	if len(inv.Args) == 0 {
		return "", hookenv.UsageErrorf("missing secret URI")
	}
	if id, err = secret.ParseID(inv.Args[0]); err != nil {
		return "", hookenv.UsageErrorf("%v", err)
	}

	inv.Args = inv.Args[1:]
	return id, inv.RequireLocalUnit()
}

// takeOnlySecretID refuses any other argument.
func takeOnlySecretID(inv *hookenv.Invocation) (string, error) {
	id, err := takeSecretID(inv)
	if err != nil {
		return id, err
	}

	return id, inv.LimitArgs(0)
}

func prepareSecretSet(f *hookenv.FlagSet) hookenv.Runner {
	s := &secretFlags{}
	s.addFlags(f)

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		id, err := takeSecretID(inv)
		if err != nil {
			return err
		}
		if err := s.readChange(ctx, inv, inv.Args); err != nil {
			return err
		}

		return inv.Hook.SetSecret(ctx, id, s.change)
	}
}

func prepareSecretGrant(f *hookenv.FlagSet) hookenv.Runner {
	g := &secretGrantee{}
	g.relationFlag.addFlags(f)
	f.AddString(&g.grant.Unit, "this unit only", "UNIT", "unit")

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		id, err := takeOnlySecretID(inv)
		if err != nil {
			return err
		}
		if err := g.findRelation(ctx, inv); err != nil {
			return err
		}

		return inv.Hook.GrantSecret(ctx, id, g.grant)
	}
}

type secretGrantee struct {
	relationFlag
	grant hookapi.SecretGrant
}

// findRelation puts the relation of the flags, or else the hook's, into the grant.
func (g *secretGrantee) findRelation(ctx context.Context, inv *hookenv.Invocation) (err error) {
	if err := g.checkRelation(ctx, inv); err != nil {
		return err
	}

	g.grant.Relation, err = g.resolveRelation(ctx, inv, "")
	return err
}

func prepareSecretRevoke(f *hookenv.FlagSet) hookenv.Runner {
	g := &secretGrantee{grant: hookapi.SecretGrant{Relation: hookapi.NoRelation}}
	g.relationFlag.addFlags(f)
	f.AddString(&g.grant.Service, "all grants of this application", "APPLICATION", "app", "application")
	f.AddString(&g.grant.Unit, "all grants of this unit alone", "UNIT", "unit")

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		if g.grant.Service != "" && g.grant.Unit != "" {
			return hookenv.UsageErrorf("specify only one of application or unit")
		}

		id, err := takeOnlySecretID(inv)
		if err != nil {
			return err
		}
		if g.option != "" || g.grant.Service+g.grant.Unit == "" {
			if err := g.findRelation(ctx, inv); err != nil {
				return err
			}
		}

		return inv.Hook.RevokeSecret(ctx, id, g.grant)
	}
}

func prepareSecretRemove(f *hookenv.FlagSet) hookenv.Runner {
	revision := 0
	f.AddFunc(func(name, value string) (err error) {
		revision, err = strconv.Atoi(value)
		if err != nil || revision < 1 {
			return hookenv.UsageErrorf("invalid value %q for option %s: want a number from 1", value, name)
		}
		return nil
	}, "this revision only", "N", "revision")

	return func(ctx context.Context, inv *hookenv.Invocation) error {
		id, err := takeOnlySecretID(inv)
		if err != nil {
			return err
		}
		return inv.Hook.RemoveSecret(ctx, id, revision)
	}
}
