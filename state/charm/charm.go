// Package charm reads charms: their metadata, configuration schema, archives, names and URLs. A charm is a
// directory, or a zip archive of such a directory.
//
// It handles files and bytes, but not the store, units or environments.
//
// Charms are not trusted, so all sizes have limits; see the constants beginning with Max. An error about a
// limit names the file, its size and the limit.
package charm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// Charm is a charm that has been read and checked.
type Charm struct {
	Meta     *Meta
	Config   *Config           // never nil; without config.yaml it has no options
	Actions  map[string]Action // actions by name; may be empty
	Revision int               // from the revision file or metadata.yaml; 0 if neither has it

	files map[string]fs.FileMode // types of all files and symlinks, and of the known directories
	made  []item                 // files that charmcraft would generate
}

// ReadDir reads the charm in the directory path, without the files that .jujuignore and the default rules
// leave out. It does not check files that it does not read, since the directory of a charm in use can contain
// sockets and other files.
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

// listDir lists the files in the directory, in lexical order, at most MaxFiles. [Archive] returns an error for
// a charm with more files.
func listDir(root *os.Root, rules ignoreRules) (map[string]fs.FileMode, error) {
	files := make(map[string]fs.FileMode)
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			// The directory may be readable only for a program that a hook runs.
			return nil
		case len(files) >= MaxFiles:
			return fs.SkipAll
		case name == ".":
			// This is the charm's directory itself.
		case !rules.match(name, d.IsDir()):
			files[name] = d.Type()
		case d.IsDir():
			return fs.SkipDir
		}

		return nil
	})

	return files, err
}

// ReadParts reads a charm from the texts of some of its files, by name: metadata.yaml, config.yaml,
// actions.yaml and manifest.yaml. The charm's dialect can then be wrong, since it also depends on other
// files.
func ReadParts(parts map[string]string) (_ *Charm, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot read charm: %w", err)
		}
	}()

	files := map[string]fs.FileMode{} // mode 0 is that of a regular file
	for name, text := range parts {
		if len(text) > MaxYAML {
			return nil, fmt.Errorf("%s has %d bytes; the limit is %d", name, len(text), MaxYAML)
		}
		files[name] = 0
	}
	return newCharm(files, func(name string) ([]byte, error) { return []byte(parts[name]), nil })
}

// ReadArchive reads the charm in a zip archive of size bytes. It checks the archive's list of files.
// [CheckArchive] and [Unpack] also check where symlinks lead.
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

	return newCharm(tree.fileTypes(), tree.readFile)
}

// newCharm reads a charm. files has the types of the charm's files by name, and read returns the content of a
// file.
func newCharm(files map[string]fs.FileMode, read func(name string) ([]byte, error)) (*Charm, error) {
	c := &Charm{files: files, Config: &Config{Options: map[string]Option{}}}
	if err := c.readMeta(read); err != nil {
		return nil, err
	}
	if err := c.readConfig(read); err != nil {
		return nil, err
	}
	if err := c.readActions(read); err != nil {
		return nil, err
	}
	if err := c.readRevision(read); err != nil {
		return nil, err
	}
	if err := c.makeFiles(read); err != nil {
		return nil, err
	}

	return c, nil
}

// parseFile calls parse with the content of a file. It does nothing and returns found false if the charm does
// not have the file.
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

// readMeta reads the charm's metadata from charmcraft.yaml and metadata.yaml. Each of these files may have
// all or part of the metadata, and metadata.yaml takes precedence. The bases of a packed charm are in
// manifest.yaml.
func (c *Charm) readMeta(read func(string) ([]byte, error)) error {
	var raw metaYAML
	last := ""
	for _, name := range []string{"charmcraft.yaml", "metadata.yaml", "manifest.yaml"} {
		found, err := c.parseFile(name, read, raw.merge)
		if err != nil {
			return err
		}

		// manifest.yaml alone does not make a charm. Errors name the last of the other files.
		if found && name != "manifest.yaml" {
			last = name
		}
	}

	if last == "" {
		return errors.New("this is not a charm: it has neither metadata.yaml nor charmcraft.yaml")
	}

	meta, err := raw.toMeta()
	if err != nil {
		return fmt.Errorf("%s: %w", last, err)
	}

	c.Meta = meta
	return nil
}

// readConfig reads config.yaml or, if the charm does not have it, the part of charmcraft.yaml under config. A
// charm without both keeps an empty Config.
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

// readRevision reads the file revision. Without that file it uses the key in metadata.yaml, which some charms
// have.
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

// hasFile reports whether the charm has a regular file or a symlink with the name.
func (c *Charm) hasFile(name string) bool {
	mode, ok := c.files[name]
	return ok && (mode.IsRegular() || mode.Type() == fs.ModeSymlink)
}

// HasDispatch reports whether the charm has a dispatch file, which runs instead of the hooks' files.
func (c *Charm) HasDispatch() bool { return c.hasFile("dispatch") }

// Hooks returns the names of the files in hooks/, sorted. Some of them may not be hooks, since charms also keep
// libraries there.
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

// readBounded reads a whole file. It returns an error if the file has more than MaxYAML bytes.
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

// packagesPattern matches the directory of the packages in a virtual environment of `python3 -m venv venv`.
var packagesPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^venv/lib/python3(\.\d+)?/site-packages$`)
})

// dispatchText returns the dispatch file that runs src/charm.py. The modules are in lib, in venv if it is a plain
// directory of packages, and in the given directories of a virtual environment.
func dispatchText(environment []string) string {
	modules := strings.Join(append([]string{"lib", "venv"}, environment...), ":")
	return "#!/bin/sh\nPYTHONPATH=" + modules + "${PYTHONPATH:+:$PYTHONPATH} exec ./src/charm.py\n"
}

// packageDirs returns the directories of the packages in the charm's virtual environment, sorted.
func (c *Charm) packageDirs() (dirs []string) {
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		if packagesPattern().MatchString(name) {
			dirs = append(dirs, name)
		}
	}
	return dirs
}

// makeFiles adds to c.made the files that charmcraft would generate and that the ops library reads, unless the
// charm has them. They are the dispatch file, which runs the charm's program, and the contents of
// charmcraft.yaml as metadata.yaml, config.yaml and actions.yaml.
func (c *Charm) makeFiles(read func(string) ([]byte, error)) error {
	add := func(name, text string, mode fs.FileMode) {
		if _, exists := c.files[name]; !exists {
			c.made = append(c.made, item{name: name, mode: mode, text: text})
		}
	}

	// Other charms with a src/charm.py run it from their hooks.
	needsDispatch := len(c.Hooks()) == 0 || c.hasFile("charmcraft.yaml")
	if c.hasFile("src/charm.py") && needsDispatch {
		add("dispatch", dispatchText(c.packageDirs()), 0o755)
	}

	_, err := c.parseFile("charmcraft.yaml", read, func(data []byte) error {
		var parts map[string]yaml.Node
		if err := unmarshalCharm(data, &parts); err != nil {
			return err
		}
		// The keys of metadata.yaml are at the top level of charmcraft.yaml, so the whole file is copied.
		add("metadata.yaml", string(data), 0o644)

		for _, key := range []string{"config", "actions"} {
			part, exists := parts[key]
			if !exists {
				continue
			}
			text, err := yaml.Marshal(&part)
			if err != nil {
				return err
			}
			add(key+".yaml", string(text), 0o644)
		}

		return nil
	})

	return err
}
