package juju

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

// secretFlags are the flags for the content and the description of a secret.
type secretFlags struct {
	Info    string   `placeholder:"TEXT" help:"Describe its purpose."`
	File    string   `placeholder:"FILE" help:"Read keys and values from this YAML file."`
	Content []string `arg:"" optional:"" name:"key=value" help:"KEY=VALUE, KEY#base64=VALUE or KEY#file=PATH."`
}

// readContent reads the secret's content from the file and the arguments of the command. The value of an argument
// replaces the file's value of the same key. It returns nil if there are no keys. Its errors never include a secret
// value.
func (f secretFlags) readContent() (secret.Content, error) {
	// Add and AddWords also call read, since the value of KEY#file is the path of a further file.
	read := func(path string) ([]byte, error) { return readFile(path, secret.MaxContent) }
	pairs := map[string]string{}
	content := secret.Content{}
	if f.File != "" {
		data, err := read(f.File)
		if err != nil {
			return nil, err
		}
		// The error of Unmarshal may quote the file.
		if yaml.Unmarshal(data, &pairs) != nil {
			return nil, fmt.Errorf("cannot read %q: want a mapping of keys to strings", f.File)
		}
	}

	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		before := len(content)
		if err := content.Add(key, pairs[key], read); err != nil {
			return nil, console.Usage(err)
		}
		// Two forms of one key, such as key and key#base64, are different keys of the mapping.
		if len(content) == before {
			name, _, _ := strings.Cut(key, "#")
			return nil, console.Usage(fmt.Errorf("cannot read %q: it has two values for key %q", f.File, name))
		}
	}

	if err := content.AddWords(f.Content, read); err != nil {
		return nil, console.Usage(err)
	}
	if len(content) == 0 {
		return nil, nil
	}

	return content, content.Check()
}

// newUserSecret returns the record of a new secret of the operators. It returns an error if the name cannot
// be used.
func newUserSecret(v *state.View, id, name string, now time.Time) (secret.Record, error) {
	env, err := v.Environment()
	if err != nil {
		return secret.Record{}, err
	}

	r := secret.Record{ID: id, Origin: env.UUID, Label: name, Created: now}
	return r, checkSecretName(v, name)
}

// putSecret writes a record with a new revision, and the content of that revision.
func putSecret(tx *state.Tx, ring secret.Keyring, r secret.Record, content secret.Content) error {
	if err := record.PutContent(tx, ring, r, content); err != nil {
		return err
	}
	return record.Put(tx, r)
}

// openSecrets opens the chosen environment's state for f, and passes the keys that seal its secrets.
func (o *operator) openSecrets(f func(s *state.State, ring secret.Keyring) error) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}
	ring, err := e.SecretKeys().Read()
	if err != nil {
		return err
	}

	return o.openState(e, func(s *state.State) error { return f(s, ring) })
}

// checkSecretName returns an error if the name is already in use, empty, or has the form of an id.
func checkSecretName(v *state.View, name string) error {
	if _, err := secret.ParseID(name); err == nil || name == "" {
		return console.Usage(fmt.Errorf("%q cannot be a secret's name", name))
	}

	_, err := findSecret(v, name)
	if err == nil {
		return fmt.Errorf("secret with name %q already exists", name)
	}
	if errors.Is(err, errNoSecret) {
		return nil
	}

	return err
}

// errNoSecret is returned if no operators' secret has the name.
var errNoSecret = errors.New("the secret does not exist")

// findSecret returns the secret whose id is nameOrID, or the operators' secret of that name. It returns an error
// that wraps [state.ErrNotFound] if no secret has the id, and errNoSecret if no operators' secret has the name.
func findSecret(v *state.View, nameOrID string) (secret.Record, error) {
	if id, err := secret.ParseID(nameOrID); err == nil {
		return record.Get(v, id)
	}

	secrets, err := record.All(v)
	if err != nil {
		return secret.Record{}, err
	}
	for _, r := range secrets {
		if r.Owner == (secret.Owner{}) && r.Label == nameOrID {
			return r, nil
		}
	}

	return secret.Record{}, fmt.Errorf("secret %q not found: %w", nameOrID, errNoSecret)
}

// findOwnSecret is like findSecret, but also returns an error if the operators do not own the secret.
func findOwnSecret(v *state.View, nameOrID string) (secret.Record, error) {
	r, err := findSecret(v, nameOrID)
	if err != nil {
		return r, err
	}
	if r.Owner != (secret.Owner{}) {
		return r, fmt.Errorf("secret %q belongs to %s, and only its charm can change it", nameOrID, r.Owner)
	}

	return r, nil
}
