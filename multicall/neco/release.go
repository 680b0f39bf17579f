package neco

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"bijou/multicall/console"
	"bijou/state/osutil"
	"bijou/updater/release"
)

type releaseCmd struct {
	Manifest     string   `arg:"" optional:"" help:"The plan. Its components can name files beside it with file: PATH, without sums. Default: only write a new index."`
	Output       string   `short:"o" required:"" placeholder:"DIR" help:"Put the release into this directory."`
	Sign         string   `placeholder:"KEY" help:"Sign with this secret key, from neco key or from minisign."`
	PasswordFile string   `placeholder:"FILE" help:"Read the password of the key from this file."`
	Version      string   `placeholder:"V" help:"Give the release this version. Default: the version in the plan."`
	TagPrefix    string   `default:"release" placeholder:"PREFIX" help:"Begin the release's tag with PREFIX and a hyphen."`
	PreRelease   bool     `help:"Make the release only for fleets with env staging."`
	Program      []string `placeholder:"FILE" help:"Include the bijou binary FILE; once for each architecture. Default: the running binary."`
	Package      []string `placeholder:"FILE" help:"Include the Debian package FILE of neco, with the release's plan and version, for servers on which neco is a package; once for each architecture."`
}

// Run creates the release, and prints the paths of its files. Without a manifest it only writes the index of
// the releases in the directory, and prints their tags.
func (c releaseCmd) Run(o *operator) error {
	dir, err := filepath.Abs(c.Output)
	if err != nil {
		return err
	}
	if c.Manifest == "" {
		return c.writeIndex(o, dir)
	}

	recipe, err := c.makeRecipe(o, dir)
	if err != nil {
		return err
	}
	made, err := recipe.Make(o.ctx)
	switch {
	case errors.Is(err, release.ErrOther):
		return console.Hint(fmt.Errorf("cannot create release %s: %w", made.Tag, err), "give the release a different version")
	case err != nil:
		return fmt.Errorf("cannot create a release: %w", err)
	}

	if made.Existed {
		o.note("%s already has the same files", made.Tag)
	}
	if recipe.Key == nil {
		o.note("%s is not signed, so fleets with a minisign-public-key refuse it; to sign it: --sign KEY", made.Tag)
	}

	var b strings.Builder
	for _, name := range made.Files {
		fmt.Fprintln(&b, filepath.Join(made.Dir, name))
	}
	return o.print(b.String())
}

// makeRecipe returns the recipe for the release that the flags describe. It reads the key that signs the
// release. Without --program, the release has this process's executable.
func (c releaseCmd) makeRecipe(o *operator, dir string) (release.Recipe, error) {
	if c.Version != "" {
		if _, err := release.ParseVersion(c.Version); err != nil {
			return release.Recipe{}, console.Usage(err)
		}
	}
	if c.TagPrefix == "" || strings.ContainsAny(c.TagPrefix, "-/ ") {
		return release.Recipe{}, console.Usage(fmt.Errorf("cannot use %q as the prefix of a tag: a prefix cannot be empty, or contain a hyphen, a slash or a space", c.TagPrefix))
	}

	programs := c.Program
	if len(programs) == 0 {
		own, err := os.Executable()
		if err != nil {
			return release.Recipe{}, err
		}
		programs = []string{own}
	}

	key, err := c.readKey()
	if err != nil {
		return release.Recipe{}, err
	}

	return release.Recipe{
		Manifest:   c.Manifest,
		Version:    c.Version,
		TagPrefix:  c.TagPrefix,
		PreRelease: c.PreRelease,
		Programs:   programs,
		Packages:   c.Package,
		Key:        key,
		Running:    o.parts.Version, // the version of this program
		Dir:        dir,
	}, nil
}

// readKey reads the secret key of --sign, which may need the password of --password-file. It returns nil if
// no key is given.
func (c releaseCmd) readKey() (*release.SecretKey, error) {
	if c.Sign == "" {
		return nil, nil
	}

	const maxSecretSize = 1 << 16 // in bytes, of the key's file and of the password's file
	file, err := osutil.ReadUpTo(c.Sign, maxSecretSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, console.Hint(fmt.Errorf("cannot read the secret key: %w", err), "to create a key: neco key "+c.Sign)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the secret key: %w", err)
	}

	password := ""
	if c.PasswordFile != "" {
		data, err := osutil.ReadUpTo(c.PasswordFile, maxSecretSize)
		if err != nil {
			return nil, fmt.Errorf("cannot read the password: %w", err)
		}
		password = strings.TrimRight(string(data), "\r\n")
	}

	key, err := release.ParseSecretKey(string(file), password)
	if errors.Is(err, release.ErrPassword) {
		return nil, console.Hint(fmt.Errorf("cannot use %s: %w", c.Sign, err), "give the password: --password-file FILE")
	}
	if err != nil {
		return nil, err
	}
	return &key, nil
}

// writeIndex writes the index of the releases in a directory, and prints the tags of these releases.
func (c releaseCmd) writeIndex(o *operator, dir string) error {
	tags, err := release.WriteIndex(dir)
	if err != nil {
		return fmt.Errorf("cannot write the index of %s: %w", dir, err)
	}

	o.note("%s lists %d releases", filepath.Join(dir, release.IndexFile), len(tags))
	// The empty element ends the last line.
	return o.print(strings.Join(append(tags, ""), "\n"))
}
