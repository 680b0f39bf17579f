package juju

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/juju/bundle"
	"bijou/state"
	"bijou/state/status"
	"bijou/state/text"
)

type exportBundleCmd struct {
	Filename string `placeholder:"FILE" help:"Write the bundle to this file; default: print it."`
	Charms   string `placeholder:"DIR" help:"Write DIR/bundle.yaml, and the charms and resources below DIR; default: name their original files."`

	IncludeCharmDefaults bool `help:"Include options that nobody has set, with the charms' values."`
}

// Run writes the environment as a bundle, and warns of everything that the bundle does not include.
func (c exportBundleCmd) Run(o *operator) error {
	if c.Filename != "" && c.Charms != "" {
		return console.Usage(errors.New("--filename and --charms cannot be used together: --charms DIR writes DIR/bundle.yaml"))
	}

	return o.openChosen(func(s *state.State) error {
		env, err := state.Read(o.ctx, s, bundle.ReadEnvironment)
		if err != nil {
			return fmt.Errorf("cannot export the model: %w", err)
		}
		if c.IncludeCharmDefaults {
			includeDefaults(env)
		}

		// The status is only read for its list of damaged parts.
		current, err := state.Read(o.ctx, s, func(v *state.View) (status.Status, error) {
			return status.Read(v, status.Options{Now: time.Now()})
		})
		if err != nil {
			return err
		}

		o.noteDamage(current.Damage)
		b, omitted := bundle.Export(env)
		o.noteExport(b, omitted)

		file := c.Filename
		if c.Charms == "" {
			o.note("the bundle names the original files of charms and resources, which may have changed; " +
				"--charms DIR writes the model's copies of these files; " +
				"to deploy resources from a different directory, use --allow-outside")
		} else {
			file = filepath.Join(c.Charms, "bundle.yaml")
			if err := c.writeFiles(o, s, b, env); err != nil { // also makes b refer to the written files
				return fmt.Errorf("cannot write charms: %w", err)
			}
		}

		if file == "" {
			return o.encode("yaml", b)
		}

		encoded, err := text.MarshalYAML(b)
		if err != nil {
			return err
		}

		return writeOutput(o, file, encoded)
	})
}

// noteExport prints warnings about an exported bundle: the facts that it does not include, and the options in
// it that look secret.
func (o *operator) noteExport(b *bundle.Bundle, omitted []string) {
	for _, fact := range omitted {
		o.note("warning: the bundle does not include this: %s", fact)
	}

	if secrets := b.SecretOptions(); len(secrets) > 0 {
		o.note("warning: the bundle has options in plain text that look secret: %s",
			strings.Join(secrets, ", "))
	}
}

// includeDefaults adds to each service the options that are not set, with the charm's defaults. It leaves out
// options without a default, and drops set values that do not fit the charm's current options.
func includeDefaults(env bundle.Environment) {
	for name, s := range env.Services {
		s.Options = s.Charm.Config.Effective(s.Options)
		maps.DeleteFunc(s.Options, func(_ string, value any) bool { return value == nil })
		env.Services[name] = s
	}
}

// writeFiles writes the charms and resources below the directory of --charms, and makes the bundle refer to
// these files instead of the original ones.
func (c exportBundleCmd) writeFiles(o *operator, s *state.State, b *bundle.Bundle, env bundle.Environment) error {
	for _, name := range slices.Sorted(maps.Keys(b.Applications)) {
		a := b.Applications[name]
		url := env.Services[name].Charm.URL
		if a.Channel != "" {
			// The charm is from the store. A charm from a file has a series instead of a base, a channel and a
			// revision.
			a.Series = env.Services[name].Series
			a.Base = ""
			a.Channel = ""
			a.Revision = nil
		}
		a.Charm = fmt.Sprintf("./charms/%s/%s-%d.charm", url.Series, url.Name, url.Revision)
		if err := c.writeBlob(o, s, env.Services[name].Charm.SHA256, a.Charm); err != nil {
			return err
		}

		for resource, r := range env.Services[name].Resources {
			a.Resources[resource] = "./resources/" + name + "/" + resource + "/" + r.File
			if err := c.writeBlob(o, s, r.SHA256, a.Resources[resource]); err != nil {
				return err
			}
		}
	}

	return nil
}

// writeBlob writes the blob with the checksum sum to the file name, which is relative to the directory of
// --charms. It creates the file's directory.
func (c exportBundleCmd) writeBlob(o *operator, s *state.State, sum, name string) error {
	path := filepath.Join(c.Charms, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return s.DownloadBlob(o.ctx, sum, path, 0o666)
}
