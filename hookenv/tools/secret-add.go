package tools

import (
	"context"
	"fmt"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
	"bijou/state/secret"
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

func (s *secretFlags) addFlags(f *hookenv.FlagSet) {
	f.AddString(&s.change.Description, "what it is for", "TEXT", "description")
	f.AddString(&s.expire, "when it expires: a duration (720h) or a time (RFC 3339)", "WHEN", "expire")
	f.AddString(&s.change.Label, "how this charm calls it", "LABEL", "label")
	f.AddString(&s.change.Rotate, "never, hourly, daily, weekly, monthly, quarterly or yearly", "POLICY", "rotate")
	f.AddChoice(&s.owner, "whose it is: the service's (default), or the unit's", "owner", "application", "unit")
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
	if err == nil {
		fmt.Fprintf(&inv.Stdout, "%s//%s/%s\n", secret.Scheme, inv.Facts.Model, id)
	}
	return err
}

// readChange has KEY=VALUE win over the file. No error shows a value.
func (s *secretFlags) readChange(ctx context.Context, inv *hookenv.Invocation, words []string) (err error) {
	if err := inv.RequireLocalUnit(); err != nil {
		return err
	}
	read := func(path string) ([]byte, error) { return inv.Files.Read(ctx, path) }
	content := secret.Content{}
	if s.file != "" {
		data, err := read(s.file)
		if err != nil {
			return err
		}
		pairs, err := hookenv.ParseDictionary(data)
		if err != nil {
			return hookenv.UsageErrorf("%s holds no dictionary of texts", s.file) // the error may quote it
		}
		for key, value := range pairs {
			if value != nil && err == nil {
				err = content.Add(key, *value, read)
			}
		}
		if err != nil {
			return hookenv.UsageErrorf("%v", err)
		}
	}
	if err = content.AddWords(words, read); err == nil {
		_, err = secret.NextRotation(s.change.Rotate, inv.Now())
	}
	if err == nil && s.expire != "" {
		s.change.Expires, err = secret.ParseExpiry(s.expire, inv.Now())
	}
	if err != nil {
		return hookenv.UsageErrorf("%v", err)
	}
	if len(content) > 0 {
		s.change.Content = content
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
	if err == nil {
		err = inv.LimitArgs(0)
	}
	return id, err
}
