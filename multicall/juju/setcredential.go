package juju

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gopkg.in/yaml.v3"

	"bijou/state"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

type setCredentialCmd struct {
	Cloud      string `arg:"" help:"The cloud's name in the file."`
	Credential string `arg:"" help:"The credential's name in the file."`
	File       string `required:"" placeholder:"FILE" help:"Read the credentials of clouds from this YAML file, in the form of Juju's credentials.yaml. The file can also contain clouds, as in clouds.yaml."`
	Region     string `placeholder:"REGION" help:"Set the cloud's region; default: the file's default-region for the cloud."`
}

// cloudSpec is a cloud. It is read in the form of clouds.yaml, and written in the form that Juju's hooks get.
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
	Regions          map[string]yaml.Node `yaml:"regions" json:"-"` // each region can override the endpoints
}

// readSpec reads the cloud, its region and the credential that the flags select from the file. It replaces
// the errors of the YAML decoder, since they can quote secrets.
func (c setCredentialCmd) readSpec() (cloudSpec, error) {
	var file struct {
		Clouds      map[string]cloudSpec            `yaml:"clouds"`
		Credentials map[string]map[string]yaml.Node `yaml:"credentials"`
	}

	data, err := readFile(c.File, secret.MaxContent)
	if err != nil {
		return cloudSpec{}, err
	}
	if yaml.Unmarshal(data, &file) != nil {
		return cloudSpec{}, fmt.Errorf("cannot read %q: the file contains no credentials of clouds", c.File)
	}

	spec := file.Clouds[c.Cloud]
	ofCloud := file.Credentials[c.Cloud]
	spec.Name = c.Cloud
	spec.Region = cmp.Or(c.Region, ofCloud["default-region"].Value)
	// A public cloud has the name of its type, except for these two.
	typeNames := map[string]string{"aws": "ec2", "google": "gce"}
	spec.Type = cmp.Or(spec.Type, typeNames[c.Cloud], c.Cloud)

	credential := ofCloud[c.Credential]
	attributes := map[string]string{}
	if credential.Decode(&attributes) != nil || attributes["auth-type"] == "" {
		return cloudSpec{}, fmt.Errorf("%q has no credential %q for cloud %q with an auth-type and its attributes",
			c.File, c.Credential, c.Cloud)
	}

	if len(spec.Regions) > 0 {
		region, isKnown := spec.Regions[spec.Region]
		// Decode replaces the cloud's endpoints with the region's endpoints.
		if !isKnown || region.Decode(&spec) != nil {
			return cloudSpec{}, fmt.Errorf("%q has no region %q for cloud %q: give --region",
				c.File, spec.Region, c.Cloud)
		}
	}

	// Like Juju's clients, replace the path of a file with the file's content.
	if path := attributes["file"]; filepath.IsAbs(path) {
		content, err := readFile(path, secret.MaxContent)
		if err != nil {
			return cloudSpec{}, err
		}
		attributes["file"] = string(content)
	}

	authType := attributes["auth-type"]
	delete(attributes, "auth-type")
	spec.Credential = map[string]any{"auth-type": authType, "attrs": attributes}
	return spec, nil
}

// Run stores the credential as the content of an operators' secret. It replaces the previous credential.
func (c setCredentialCmd) Run(o *operator) error {
	spec, err := c.readSpec()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return err
	}

	content := secret.Content{secret.CredentialKey: encoded}
	if err := content.Check(); err != nil {
		return err
	}

	return o.openSecrets(func(s *state.State, ring secret.Keyring) error {
		return s.Update(o.ctx, func(tx *state.Tx) error {
			now := time.Now().UTC()
			r, err := record.Get(tx.View, secret.CredentialID)
			if errors.Is(err, state.ErrNotFound) {
				// No credential is stored yet. With AutoPrune, a later call removes revisions that no unit
				// reads.
				r, err = newUserSecret(tx.View, secret.CredentialID, "cloud-credential", now)
				r.AutoPrune = true
			}
			if err != nil {
				return err
			}

			r.Description = fmt.Sprintf("%s for cloud %s", c.Credential, c.Cloud)
			r.AddRevision(now)
			return putSecret(tx, ring, r, content)
		})
	})
}
