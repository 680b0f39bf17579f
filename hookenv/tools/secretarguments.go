package tools

import (
	"context"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
	"bijou/state/secret"
	"bijou/state/text"
)

// secretFlags are the options of secret-add and secret-set.
type secretFlags struct {
	change              hookapi.SecretChange
	expire, owner, file string
}

// addFlags declares the options that describe a secret.
func (s *secretFlags) addFlags(f *hookenv.FlagSet) {
	f.AddString(&s.change.Description, "the purpose of the secret", "TEXT", "description")
	f.AddString(&s.expire, "the time at which the secret expires: a duration (720h) or a time (RFC 3339)", "WHEN", "expire")
	f.AddString(&s.change.Label, "the label of the secret in this charm", "LABEL", "label")
	f.AddString(&s.change.Rotate, "never, hourly, daily, weekly, monthly, quarterly or yearly", "POLICY",
		"rotate")
	f.AddChoice(&s.owner, "set the owner: application (default) or unit", "owner", "application", "unit")
	f.AddString(&s.file, "a YAML file with keys and values; - is stdin", "FILE", "file")
}

// readChange checks the options, and completes s.change from them, from the file and from words, which have the
// form KEY=VALUE. Words take precedence over the file. Without any keys, the change's content stays nil. The errors of
// readChange never contain a value of the secret.
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

	// Only the validity of the rotation matters here. Its time is computed when the secret is written.
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

// addFile adds the keys and texts of a YAML or JSON file to the content. It skips keys whose value is null. read reads
// the file, and for a key of the form KEY#file the file that the text names.
func addFile(content secret.Content, path string, read func(path string) ([]byte, error)) error {
	data, err := read(path)
	if err != nil {
		return err
	}
	pairs, err := hookenv.ParseDictionary(data)
	if err != nil {
		// Do not wrap the error, since it may quote a value.
		return hookenv.UsageErrorf("%s: want a mapping of keys to strings", path)
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

// takeSecretID removes the first argument, the secret's id in any of its forms, and returns the id. It
// returns an error if the argument is missing or malformed. If there is no local unit, it returns the id and
// an error.
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

// takeOnlySecretID does what takeSecretID does, and returns an error if there are further arguments.
func takeOnlySecretID(inv *hookenv.Invocation) (string, error) {
	id, err := takeSecretID(inv)
	if err != nil {
		return id, err
	}

	return id, inv.LimitArgs(0)
}

// secretGrantee holds the options of secret-grant and secret-revoke.
type secretGrantee struct {
	relationFlag
	grant hookapi.SecretGrant
}

// setRelation sets the relation of the grant to the relation in the options or, without such options, to the
// hook's relation.
func (g *secretGrantee) setRelation(ctx context.Context, inv *hookenv.Invocation) (err error) {
	if err := g.checkRelation(ctx, inv); err != nil {
		return err
	}

	// A relation's name is interpreted from the side of the local unit.
	g.grant.Relation, err = g.resolveRelation(ctx, inv, "")
	return err
}
