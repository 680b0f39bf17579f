package juju

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/state/constraints"
)

type downloadCmd struct {
	Name       string   `arg:"" help:"A charm or bundle from the store."`
	Pipe       string   `arg:"" optional:"" name:"stdout" help:"- writes it to stdout."`
	Channel    string   `placeholder:"CHANNEL" help:"Take the release in this channel; default: stable of the charm's default track."`
	Revision   int      `placeholder:"N" help:"Take revision N."`
	Base       string   `aliases:"series" placeholder:"BASE" help:"Take the release for this base (ubuntu@24.04); default: the newest Ubuntu LTS that has a release, else the newest base."`
	Arch       string   `placeholder:"ARCH" help:"Take the release for this architecture; default: this host's."`
	Filepath   string   `placeholder:"FILE" help:"Write to this file; default: NAME_rREVISION.charm here."`
	Resources  bool     `help:"Also download the resources of the release, into the same directory."`
	Resource   []string `sep:"none" placeholder:"NAME=N" help:"Take revision N of resource NAME. Can be repeated."`
	NoProgress bool     `help:"Show no progress."`
}

// Run downloads a release to a file, or to stdout if the name is followed by -. With --resources, it also
// downloads the files of the release's resources. Unless it writes to stdout, it prints a command that deploys
// the release.
func (c downloadCmd) Run(o *operator) error {
	wish, err := c.wish()
	if err != nil {
		return err
	}
	if c.NoProgress {
		// Without a bar, an operator shows no progress.
		silent := *o
		silent.bar = nil
		o = &silent
	}

	return o.askCharmStore(func(st *charmStore) error {
		r, err := st.resolve(wish)
		if err != nil {
			return fmt.Errorf("cannot download %q: %w", wish.Name, err)
		}
		if c.Pipe != "" {
			return c.pipe(st, r)
		}

		path := cmp.Or(c.Filepath, fmt.Sprintf("%s_r%d.%s", wish.Name, r.Revision, r.Type))
		// Fetch replaces the file at its path, which must not be a device such as /dev/stdout.
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return console.Hint(fmt.Errorf("cannot download %q to %q: it exists, and is not a file", wish.Name, path),
				"to write to stdout: juju download "+wish.Name+" -")
		}

		// Replace the target of a symlink, not the symlink.
		if err := st.fetchFile(o.ctx, r.File, resolveSymlinks(path), packedFile); err != nil {
			return err
		}

		deploy := []string{"juju", "deploy", asPath(path)}
		if r.Type == charmsource.TypeBundle {
			// deploy cannot read the downloaded archive of a bundle, so the command names the store's bundle.
			deploy = []string{"juju", "deploy", "ch:" + wish.Name, "--revision", strconv.Itoa(r.Revision)}
		}

		if c.Resources {
			if deploy, err = st.fetchResources(r, filepath.Dir(path), deploy); err != nil {
				return err
			}
		}

		o.note("downloaded %s to %s", r.File.What, asPath(path))
		o.note("hint: deploy it with: %s", quoteShellWords(deploy))
		return nil
	})
}

// wish returns the wish for the release that the flags describe, or a usage error.
func (c downloadCmd) wish() (w charmsource.Wish, err error) {
	name := strings.TrimPrefix(c.Name, "ch:")
	if err := c.checkFlags(name); err != nil {
		return w, console.Usage(err)
	}
	channel, err := charmsource.ParseChannel(c.Channel)
	if err != nil {
		return w, console.Usage(err)
	}

	w = charmsource.Wish{Name: name, Channel: channel, Revision: c.Revision}
	w.Arch = cmp.Or(c.Arch, constraints.HostArch())
	if w.Resources, err = c.resourceRevisions(); err != nil {
		return w, console.Usage(err)
	}
	w.Base, err = parseBaseFlag(c.Base)
	return w, err
}

// checkFlags returns an error if the name or a flag is invalid, or if flags exclude each other.
func (c downloadCmd) checkFlags(name string) error {
	switch {
	case charm.CheckName(name) != nil:
		return fmt.Errorf("cannot download %q: that is not the name of a charm in the store", c.Name)
	case c.Pipe != "" && c.Pipe != "-":
		return fmt.Errorf("unexpected %q: only - can follow the name, for stdout", c.Pipe)
	case c.Revision < 0:
		return fmt.Errorf("invalid --revision %d: want a number from 1", c.Revision)
	case c.Revision > 0 && c.Channel+c.Base+c.Arch != "":
		return errors.New("--revision cannot be used with --channel, --base or --arch: a revision implies them")
	case c.Pipe != "" && (c.Resources || c.Filepath != ""):
		return errors.New("--resources and --filepath cannot be used with stdout")
	}
	return nil
}

// resourceRevisions parses the words NAME=N of --resource, and returns the revisions by name. It returns an
// error for a word of any other form, and for any word without --resources.
func (c downloadCmd) resourceRevisions() (map[string]int, error) {
	wanted := map[string]int{}
	for _, word := range c.Resource {
		name, number, _ := strings.Cut(word, "=")
		revision, err := strconv.Atoi(number)
		if err != nil || revision < 0 || name == "" {
			return nil, fmt.Errorf("invalid --resource %q: want NAME=N, the number of a revision", word)
		}
		wanted[name] = revision
	}
	if len(wanted) > 0 && !c.Resources {
		return nil, errors.New("--resource needs --resources")
	}

	return wanted, nil
}

// pipe downloads and verifies the whole file of the release, and then writes it to stdout.
func (c downloadCmd) pipe(st *charmStore, r *charmRelease) error {
	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	path := filepath.Join(scratch, "file")
	if err := st.fetchFile(st.o.ctx, r.File, path, packedFile); err != nil {
		return err
	}

	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	_, err = io.Copy(st.o.streams.Out, file)
	return err
}

// fetchResources downloads the files of the release's resources into the directory folder. It returns the
// words of the command deploy, and after them the flags that attach the files.
func (st *charmStore) fetchResources(r *charmRelease, folder string, deploy []string) ([]string, error) {
	for _, resource := range r.Resources {
		if resource.Type != charmsource.TypeFile || resource.File.URL == "" {
			continue
		}

		name := fmt.Sprintf("resource_%s_r%d", filepath.Base(resource.Name), resource.Revision)
		if resource.Filename != "" {
			name += "_" + filepath.Base(resource.Filename)
		}

		path := filepath.Join(folder, name)
		if err := st.fetchFile(st.o.ctx, resource.File, path, resourceFile); err != nil {
			return nil, err
		}
		deploy = append(deploy, "--resource", resource.Name+"="+asPath(path))
	}
	return deploy, nil
}

// asPath returns the path in a form that juju deploy recognizes as a path.
func asPath(path string) string {
	if filepath.IsAbs(path) || strings.HasPrefix(path, ".") {
		return path
	}
	return "./" + path
}
