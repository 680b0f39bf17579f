// Package charm reads charms: their metadata, configuration schema, archives,
// names and URLs. A charm is a directory or a zip archive of one.
//
// It knows files and bytes, never the store, a unit or an environment, and imports nothing
// of bijou. The operator's commands, state and the agents import it.
//
// Charms come from outside, so everything here is bounded (limits.go), and an error names
// the file, its size and the limit.
package charm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"gopkg.in/yaml.v3"
)

// Charm is a charm that has been read and checked.
type Charm struct {
	Meta     *Meta
	Config   *Config           // never nil; without config.yaml it has no options
	Actions  map[string]Action // by name; may be empty
	Revision int               // from the revision file, else from metadata.yaml, else 0

	files map[string]fs.FileMode // every file and link, and folders where they are known
	made  []item                 // files that charmcraft would make of what there is
}

// ReadDir reads the charm in the directory path, without the files that [Archive] leaves out. It does
// not look at files that it does not need: a charm directory in use may hold sockets and anything else.
func ReadDir(path string) (_ *Charm, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot read charm %q: %w", path, err)
		}
	}()

	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer root.Close()

	rules, err := readIgnoreRules(root)
	if err != nil {
		return nil, err
	}
	return readDir(root, rules)
}

// readDir reads the charm in a directory.
func readDir(root *os.Root, rules ignoreRules) (*Charm, error) {
	files, err := listDir(root, rules)
	if err != nil {
		return nil, err
	}

	return newCharm(files, func(name string) ([]byte, error) {
		f, err := root.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readBounded(f)
	})
}

// listDir lists the files in the directory, at most MaxFiles. Any files beyond that could only show which
// dialect the charm has.
func listDir(root *os.Root, rules ignoreRules) (map[string]fs.FileMode, error) {
	files := make(map[string]fs.FileMode)
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name == ".":
			return err
		case err != nil: // a folder that only a hook's program may read
			return nil
		case len(files) >= MaxFiles:
			return fs.SkipAll
		case name == ".":
			// The charm's directory itself.
		case !rules.match(name, d.IsDir()):
			files[name] = d.Type()
		case d.IsDir():
			return fs.SkipDir
		}

		return nil
	})

	return files, err
}

// ReadParts reads a charm from the text of some of its files, by name: metadata.yaml, config.yaml,
// actions.yaml and manifest.yaml. The charm's dialect is a guess then, since other files can decide it.
func ReadParts(parts map[string]string) (_ *Charm, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot read charm: %w", err)
		}
	}()

	files := map[string]fs.FileMode{}
	for name, text := range parts {
		if len(text) > MaxYAML {
			return nil, fmt.Errorf("%s has %d bytes, at most %d", name, len(text), MaxYAML)
		}
		files[name] = 0
	}
	return newCharm(files, func(name string) ([]byte, error) { return []byte(parts[name]), nil })
}

// ReadArchive reads the charm in a zip archive of size bytes. The names in the
// archive are checked; CheckArchive and Unpack check all the rest.
func ReadArchive(r io.ReaderAt, size int64) (_ *Charm, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot read charm archive: %w", err)
		}
	}()

	tree, err := openArchive(r, size, defaultLimits())
	if err != nil {
		return nil, err
	}

	return newCharm(tree.fileModes(), tree.readFile)
}

// newCharm returns the charm of these files, whose contents read returns.
func newCharm(files map[string]fs.FileMode, read func(name string) ([]byte, error)) (*Charm, error) {
	c := &Charm{files: files, Config: &Config{Options: map[string]Option{}}}
	for _, readPart := range []func(func(string) ([]byte, error)) error{c.readMeta, c.readConfig, c.readActions, c.readRevision, c.makeFiles} {
		if err := readPart(read); err != nil {
			return nil, err
		}
	}

	return c, nil
}

// parseFile reports whether the charm has the file.
func (c *Charm) parseFile(
	name string,
	read func(string) ([]byte, error),
	parse func([]byte) error,
) (found bool, err error) {
	if !c.hasFile(name) {
		return false, nil
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()

	data, err := read(name)
	if err != nil {
		return true, err
	}

	return true, parse(data)
}

// readMeta reads the charm's metadata from charmcraft.yaml and metadata.yaml. Either can hold all of it or
// a part; metadata.yaml has precedence. A packed charm's bases stand in manifest.yaml.
func (c *Charm) readMeta(read func(string) ([]byte, error)) error {
	var raw metaYAML
	last := ""
	for _, name := range []string{"charmcraft.yaml", "metadata.yaml", "manifest.yaml"} {
		found, err := c.parseFile(name, read, raw.merge)
		if err != nil {
			return err
		}

		if found && name != "manifest.yaml" {
			last = name
		}
	}

	if last == "" {
		return errors.New("it is not a charm: it has neither metadata.yaml nor charmcraft.yaml")
	}

	meta, err := raw.toMeta()
	c.Meta = meta
	if err != nil {
		return fmt.Errorf("%s: %w", last, err)
	}

	return nil
}

func (c *Charm) readConfig(read func(string) ([]byte, error)) error {
	file := "config.yaml"
	key := ""
	if !c.hasFile(file) {
		file = "charmcraft.yaml"
		key = "config"
	}
	_, err := c.parseFile(file, read, func(data []byte) (err error) {
		c.Config, err = parseConfig(data, key)
		return err
	})

	return err
}

// readRevision reads the file revision, or else the key in metadata.yaml, where older charms have it.
func (c *Charm) readRevision(read func(string) ([]byte, error)) error {
	found, err := c.parseFile("revision", read, func(data []byte) (err error) {
		c.Revision, err = parseRevision(data)
		return err
	})
	if !found && c.Meta.revision != nil {
		c.Revision = *c.Meta.revision
	}
	return err
}

func (c *Charm) hasFile(name string) bool {
	mode, ok := c.files[name]
	return ok && (mode.IsRegular() || mode.Type() == fs.ModeSymlink)
}

// HasDispatch reports whether the charm has a dispatch file, which then runs in place of
// every hook.
func (c *Charm) HasDispatch() bool { return c.hasFile("dispatch") }

// Hooks returns the names of the files in hooks/, sorted. Not all need be hooks:
// charms keep their libraries there, too.
func (c *Charm) Hooks() []string {
	var names []string
	for name := range c.files {
		if dir, base := path.Split(name); dir == "hooks/" && c.hasFile(name) {
			names = append(names, base)
		}
	}

	slices.Sort(names)
	return names
}

// readBounded reads a file of YAML, at most MaxYAML bytes.
func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxYAML+1))
	if err != nil {
		return data, err
	}
	if len(data) > MaxYAML {
		return nil, fmt.Errorf("too big: more than %s", formatSize(MaxYAML))
	}

	return data, nil
}

const dispatchText = "#!/bin/sh\nPYTHONPATH=lib:venv${PYTHONPATH:+:$PYTHONPATH} exec ./src/charm.py\n"

// makeFiles adds the files that charmcraft would write into the charm and that the ops library reads. They
// are the parts of charmcraft.yaml as files of their own, and the file that runs the charm's program.
func (c *Charm) makeFiles(read func(string) ([]byte, error)) error {
	add := func(name, text string, mode fs.FileMode) {
		if _, there := c.files[name]; !there {
			c.made = append(c.made, item{name: name, mode: mode, text: text})
		}
	}

	if c.hasFile("src/charm.py") && (len(c.Hooks()) == 0 || c.hasFile("charmcraft.yaml")) {
		add("dispatch", dispatchText, 0o755)
	}

	_, err := c.parseFile("charmcraft.yaml", read, func(data []byte) error {
		var parts map[string]yaml.Node
		err := unmarshalCharm(data, &parts)
		add("metadata.yaml", string(data), 0o644)

		for _, key := range []string{"config", "actions"} {
			if part, there := parts[key]; there {
				text, merr := yaml.Marshal(&part)
				err = cmp.Or(err, merr)
				add(key+".yaml", string(text), 0o644)
			}
		}

		return err
	})

	return err
}
