package juju

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secrets"
)

// secretFlags are the content of a secret, and what is said about it.
type secretFlags struct {
	Info    string   `placeholder:"TEXT" help:"What it is for."`
	File    string   `placeholder:"FILE" help:"A YAML file with keys and values."`
	Content []string `arg:"" optional:"" name:"key=value" help:"KEY=VALUE, KEY#base64=VALUE or KEY#file=PATH."`
}

// readContent returns nil if there is none. Errors show no value.
func (f secretFlags) readContent() (secret.Content, error) {
	read := func(path string) ([]byte, error) { return readFile(path, secret.MaxContent) }
	pairs, content := map[string]string{}, secret.Content{}
	if f.File != "" {
		data, err := read(f.File)
		if err == nil && yaml.Unmarshal(data, &pairs) != nil { // its error may quote the file
			err = fmt.Errorf("cannot read %q: it holds no dictionary of texts", f.File)
		}
		if err != nil {
			return nil, err
		}
	}
	for key, value := range pairs {
		if err := content.Add(key, value, read); err != nil {
			return nil, console.Usage(err)
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

type addSecretCmd struct {
	Name string `arg:"" help:"What operators call it."`
	secretFlags
}

// Run adds the secret.
func (c addSecretCmd) Run(o *operator) error {
	content, err := c.readContent()
	if err == nil && content == nil {
		err = console.Usage(errors.New("it is not said what the secret is: give KEY=VALUE, or --file FILE"))
	}
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	id := secret.NewID(now)
	err = o.openSecrets(func(s *state.State, ring secret.Keyring) error {
		return s.Update(o.ctx, func(tx *state.Tx) error {
			r, err := newUserSecret(tx.View, id, c.Name, now)
			if err != nil {
				return err
			}
			r.Description = c.Info
			r.AddRevision(now)
			return putSecret(tx, ring, r, content)
		})
	})
	if err == nil {
		fmt.Fprintln(o.streams.Out, secret.Scheme+id)
	}
	return err
}

func newUserSecret(v *state.View, id, name string, now time.Time) (secret.Record, error) {
	env, err := v.Environment()
	if err != nil {
		return secret.Record{}, err
	}
	return secret.Record{ID: id, Origin: env.UUID, Label: name, Created: now}, checkSecretName(v, name)
}

// putSecret writes a record with a new revision, and the content of that.
func putSecret(tx *state.Tx, ring secret.Keyring, r secret.Record, content secret.Content) error {
	if err := secrets.PutContent(tx, ring, r, content); err != nil {
		return err
	}
	return secrets.Put(tx, r)
}

// openSecrets opens the chosen environment's state, and reads the keys of its secrets.
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

var errNoSecret = errors.New("no such secret")

// findSecret returns the secret of that id, or the operators' of that name.
func findSecret(v *state.View, nameOrID string) (secret.Record, error) {
	if id, err := secret.ParseID(nameOrID); err == nil {
		return secrets.Get(v, id)
	}
	all, err := secrets.All(v)
	for _, r := range all {
		if r.Owner == (secret.Owner{}) && r.Label == nameOrID {
			return r, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("secret %q not found: %w", nameOrID, errNoSecret)
	}
	return secret.Record{}, err
}

// findOwnSecret refuses the secrets of charms.
func findOwnSecret(v *state.View, nameOrID string) (secret.Record, error) {
	r, err := findSecret(v, nameOrID)
	if err == nil && r.Owner != (secret.Owner{}) {
		err = fmt.Errorf("secret %q is that of %s, whose charm alone changes it", nameOrID, r.Owner)
	}
	return r, err
}

type updateSecretCmd struct {
	Secret    string `arg:"" help:"Its name, or its URI."`
	Name      string `placeholder:"NAME" help:"What operators call it from now on."`
	AutoPrune *bool  `negatable:"" help:"Remove revisions that nobody reads any more."`
	secretFlags
}

// Run changes the secret.
func (c updateSecretCmd) Run(o *operator) error {
	content, err := c.readContent()
	if err != nil {
		return err
	}
	return o.openSecrets(func(s *state.State, ring secret.Keyring) error {
		return s.Update(o.ctx, func(tx *state.Tx) error { return c.change(tx, ring, content) })
	})
}

func (c updateSecretCmd) change(tx *state.Tx, ring secret.Keyring, content secret.Content) error {
	r, err := findOwnSecret(tx.View, c.Secret)
	if err == nil && c.Name != "" && c.Name != r.Label {
		r.Label, err = c.Name, checkSecretName(tx.View, c.Name)
	}
	if err != nil {
		return err
	}
	if c.Info != "" {
		r.Description = c.Info
	}
	if c.AutoPrune != nil {
		r.AutoPrune = *c.AutoPrune
	}
	if content == nil {
		return secrets.Put(tx, r)
	}
	newest, err := secrets.Open(tx.View, ring, r, r.Latest)
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}
	if newest.Equal(content) {
		return secrets.Put(tx, r)
	}
	r.AddRevision(time.Now().UTC())
	return putSecret(tx, ring, r, content)
}

type setCredentialCmd struct {
	Cloud      string `arg:"" help:"The cloud, as the file names it."`
	Credential string `arg:"" help:"One of its credentials in the file."`
	File       string `required:"" placeholder:"FILE" help:"A YAML file with the credentials of clouds, as Juju's credentials.yaml; clouds, as in its clouds.yaml, can stand beside them."`
	Region     string `placeholder:"REGION" help:"The cloud's region; default: the file's default-region for the cloud."`
}

// cloudSpec is read as clouds.yaml has a cloud, and written as Juju's hooks get it.
type cloudSpec struct {
	Type             string               `yaml:"type" json:"type"`
	Name             string               `yaml:"-" json:"name"`
	Region           string               `yaml:"-" json:"region,omitempty"`
	Endpoint         string               `yaml:"endpoint" json:"endpoint,omitempty"`
	IdentityEndpoint string               `yaml:"identity-endpoint" json:"identity-endpoint,omitempty"`
	StorageEndpoint  string               `yaml:"storage-endpoint" json:"storage-endpoint,omitempty"`
	Credential       map[string]any       `yaml:"-" json:"credential"`
	CACertificates   []string             `yaml:"ca-certificates" json:"cacertificates,omitempty"`
	SkipTLSVerify    bool                 `yaml:"skip-tls-verify" json:"skip-tls-verify,omitempty"`
	Regions          map[string]yaml.Node `yaml:"regions" json:"-"` // with endpoints of their own
}

// readSpec shows nothing of the file in its errors.
func (c setCredentialCmd) readSpec() (cloudSpec, error) {
	var file struct {
		Clouds      map[string]cloudSpec            `yaml:"clouds"`
		Credentials map[string]map[string]yaml.Node `yaml:"credentials"`
	}
	data, err := readFile(c.File, secret.MaxContent)
	if err == nil && yaml.Unmarshal(data, &file) != nil {
		err = fmt.Errorf("cannot read %q: it holds no credentials of clouds", c.File)
	}
	if err != nil {
		return cloudSpec{}, err
	}
	spec, ofCloud := file.Clouds[c.Cloud], file.Credentials[c.Cloud]
	spec.Name, spec.Region = c.Cloud, cmp.Or(c.Region, ofCloud["default-region"].Value)
	spec.Type = cmp.Or(spec.Type, map[string]string{"aws": "ec2", "google": "gce"}[c.Cloud], c.Cloud)
	credential, attributes := ofCloud[c.Credential], map[string]string{}
	if credential.Decode(&attributes) != nil || attributes["auth-type"] == "" {
		return spec, fmt.Errorf("%q has no credential %q of cloud %q, with an auth-type and its attributes", c.File, c.Credential, c.Cloud)
	}
	region, known := spec.Regions[spec.Region]
	if len(spec.Regions) > 0 && (!known || region.Decode(&spec) != nil) {
		return spec, fmt.Errorf("%q has no region %q of cloud %q: give --region", c.File, spec.Region, c.Cloud)
	}
	if path := attributes["file"]; filepath.IsAbs(path) { // Juju's clients send its content, too
		data, err = readFile(path, secret.MaxContent)
		attributes["file"] = string(data)
	}
	spec.Credential = map[string]any{"auth-type": attributes["auth-type"], "attrs": attributes}
	delete(attributes, "auth-type")
	return spec, err
}

// Run makes it the content of an operators' secret.
func (c setCredentialCmd) Run(o *operator) error {
	spec, err := c.readSpec()
	if err != nil {
		return err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	content := secret.Content{secret.CredentialKey: text}
	if err := content.Check(); err != nil {
		return err
	}
	return o.openSecrets(func(s *state.State, ring secret.Keyring) error {
		return s.Update(o.ctx, func(tx *state.Tx) error {
			now := time.Now().UTC()
			r, err := secrets.Get(tx.View, secret.CredentialID)
			if errors.Is(err, state.ErrNotFound) {
				r, err = newUserSecret(tx.View, secret.CredentialID, "cloud-credential", now)
				r.AutoPrune = true
			}
			if err != nil {
				return err
			}
			r.Description = fmt.Sprintf("%s of cloud %s", c.Credential, c.Cloud)
			r.AddRevision(now)
			return putSecret(tx, ring, r, content)
		})
	})
}

type trustCmd struct {
	Service string `arg:"" help:"The service."`
	Remove  bool   `help:"Let it have the credential no longer."`
	Scope   string `hidden:"" enum:",cluster" default:"" help:"Of programs that know Juju: the service is trusted, whatever its cluster."`
}

// Run trusts the service, or no longer does; one that it is so of already stays so.
func (c trustCmd) Run(o *operator) error {
	return o.update(func(tx *state.Tx) error { return tx.SetTrusted(c.Service, !c.Remove) })
}
