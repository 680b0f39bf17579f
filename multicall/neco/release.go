package neco

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bijou/multicall/console"
	"bijou/state/osutil"
	"bijou/updater/release"
)

type releaseCmd struct {
	Manifest     string   `arg:"" optional:"" help:"The plan. Components name files beside it as file: PATH, without sums. Default: only write the index anew."`
	Output       string   `short:"o" required:"" placeholder:"DIR" help:"Put the release into this folder of releases."`
	Sign         string   `placeholder:"KEY" help:"Sign with this secret key, of neco key or of minisign."`
	PasswordFile string   `placeholder:"FILE" help:"Read the password of the key from this file."`
	Version      string   `placeholder:"V" help:"Give the release this version. Default: the one that the plan says."`
	TagPrefix    string   `default:"release" placeholder:"PREFIX" help:"Put this before the version in the tag."`
	PreRelease   bool     `help:"Have only fleets with env staging take it."`
	Program      []string `placeholder:"FILE" help:"Bring this bijou, once for each architecture. Default: the one that runs."`
	Package      []string `placeholder:"FILE" help:"Bring this Debian package of neco, with the release's plan and version, for servers that have neco as one. Once for each architecture."`
}

func (c releaseCmd) Run(o *operator) error {
	dir, err := filepath.Abs(c.Output)
	if err != nil {
		return err
	}
	if c.Manifest == "" {
		return c.writeIndex(o, dir)
	}

	recipe, err := c.recipe(o, dir)
	if err != nil {
		return err
	}
	made, err := recipe.Make(o.ctx)
	switch {
	case errors.Is(err, release.ErrOther):
		return console.Hint(fmt.Errorf("cannot make release %s: %w", made.Tag, err), "give it another version")
	case err != nil:
		return fmt.Errorf("cannot make a release: %w", err)
	}

	if made.Existed {
		o.note("%s has the same files already", made.Tag)
	}
	if recipe.Key == nil {
		o.note("%s is not signed: fleets with a minisign-public-key refuse it (--sign KEY)", made.Tag)
	}

	var b strings.Builder
	for _, name := range made.Files {
		fmt.Fprintln(&b, filepath.Join(made.Dir, name))
	}
	return o.print(b.String())
}

// recipe returns the recipe of the release that the flags describe.
func (c releaseCmd) recipe(o *operator, dir string) (r release.Recipe, err error) {
	if c.Version != "" {
		if _, err := release.ParseVersion(c.Version); err != nil {
			return r, console.Usage(err)
		}
	}
	if c.TagPrefix == "" || strings.ContainsAny(c.TagPrefix, "-/ ") {
		return r, console.Usage(fmt.Errorf("cannot take %q for the prefix of a tag: it has no hyphen, slash or blank", c.TagPrefix))
	}

	programs := c.Program
	if len(programs) == 0 {
		own, err := os.Executable()
		if err != nil {
			return r, err
		}
		programs = []string{own}
	}

	key, err := c.readKey()
	if err != nil {
		return r, err
	}

	return release.Recipe{
		Manifest:   c.Manifest,
		Version:    c.Version,
		TagPrefix:  c.TagPrefix,
		PreRelease: c.PreRelease,
		Programs:   programs,
		Packages:   c.Package,
		Key:        key,
		Running:    o.parts.Version,
		Dir:        dir,
	}, nil
}

// readKey returns nil if none is given.
func (c releaseCmd) readKey() (*release.SecretKey, error) {
	if c.Sign == "" {
		return nil, nil
	}
	const maxKey = 1 << 16 // bytes; more is not a key
	file, err := osutil.ReadUpTo(c.Sign, maxKey)
	if err != nil {
		return nil, console.Hint(fmt.Errorf("cannot read the secret key: %w", err), "to make one: neco key "+c.Sign)
	}

	password := ""
	if c.PasswordFile != "" {
		data, err := osutil.ReadUpTo(c.PasswordFile, maxKey)
		if err != nil {
			return nil, fmt.Errorf("cannot read the password: %w", err)
		}
		password = strings.TrimRight(string(data), "\r\n")
	}

	key, err := release.ParseSecretKey(string(file), password)
	if errors.Is(err, release.ErrPassword) {
		err = console.Hint(fmt.Errorf("cannot use %s: %w", c.Sign, err), "give --password-file FILE")
	}
	return &key, err
}

// writeIndex writes the index of the releases in a directory.
func (c releaseCmd) writeIndex(o *operator, dir string) error {
	tags, err := release.WriteIndex(dir)
	if err != nil {
		return fmt.Errorf("cannot write the index of %s: %w", dir, err)
	}

	o.note("%s lists %d releases", filepath.Join(dir, release.IndexFile), len(tags))
	return o.print(strings.Join(append(tags, ""), "\n"))
}
