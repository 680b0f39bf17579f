package author

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"golang.org/x/tools/txtar"

	"bijou/multicall/console"
	"bijou/state/charm"
)

//go:embed beginnings
var beginnings embed.FS

// createCmd is the command charm create.
type createCmd struct {
	Name        string     `arg:"" help:"The name of the charm and of its new directory."`
	Lang        string     `enum:"bash,python" default:"bash" placeholder:"LANGUAGE" help:"Write the hooks in this language, bash or python; default bash."`
	Provides    []relation `sep:"none" placeholder:"RELATION:INTERFACE" help:"Provide RELATION, with INTERFACE, to other applications. Can be repeated."`
	Requires    []relation `sep:"none" placeholder:"RELATION:INTERFACE" help:"Require RELATION, with INTERFACE, from other applications. Can be repeated."`
	Subordinate bool       `help:"Create a subordinate charm, whose units run beside those of a different application."`
}

// relation is a relation of the new charm, as an argument RELATION:INTERFACE.
type relation struct{ Name, Interface string }

// UnmarshalText parses RELATION:INTERFACE. It returns an error if either name is not valid.
func (r *relation) UnmarshalText(text []byte) error {
	var isPair bool
	r.Name, r.Interface, isPair = strings.Cut(string(text), ":")
	if !isPair {
		return errors.New("want RELATION:INTERFACE, as in db:mysql")
	}
	return errors.Join(charm.CheckRelation(r.Name), charm.CheckInterface(r.Interface))
}

// Function returns the relation's name as a part of the name of a Python function.
func (r relation) Function() string { return strings.ReplaceAll(r.Name, "-", "_") }

// Run creates the directory of a new charm. It returns an error, and writes nothing, if the directory exists. If it
// cannot write the charm, or the charm cannot be deployed, it removes the directory that it has created.
func (c createCmd) Run(a *author) error {
	// A new subordinate charm has a relation host.
	seen := map[string]bool{"host": c.Subordinate}
	for _, r := range append(c.Provides, c.Requires...) {
		if seen[r.Name] {
			return console.Usage(fmt.Errorf("the charm would have two relations %q", r.Name))
		}
		seen[r.Name] = true
	}

	if err := charm.CheckName(c.Name); err != nil {
		return console.Usage(err)
	}
	if err := os.Mkdir(c.Name, 0o777); err != nil {
		err := fmt.Errorf("cannot create charm: %w", err)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		return console.Hint(err, "charm create never overwrites a file: choose another name or another directory")
	}

	err := c.write()
	if err != nil {
		return errors.Join(fmt.Errorf("cannot create charm: %w", err), os.RemoveAll(c.Name))
	}

	// Check that the charm can be deployed.
	_, err = charm.ReadDir(c.Name)
	if err != nil {
		return errors.Join(fmt.Errorf("cannot create charm: %w", err), os.RemoveAll(c.Name))
	}

	fmt.Fprintf(a.streams.Err, "created charm %q; next: cd %s && charm test\n", c.Name, c.Name)
	return nil
}

// write writes the files of a new charm: the files for all languages, and those for the chosen language.
func (c createCmd) write() error {
	var text strings.Builder
	for _, name := range []string{"every", c.Lang} {
		t, err := template.ParseFS(beginnings, "beginnings/"+name+".txt")
		if err != nil {
			return fmt.Errorf("internal error: %w", err)
		}
		if err := t.Execute(&text, c); err != nil {
			return fmt.Errorf("internal error: %w", err)
		}
	}

	for _, f := range txtar.Parse([]byte(text.String())).Files {
		file := filepath.Join(c.Name, f.Name)
		mode := os.FileMode(0o666)
		if strings.HasPrefix(string(f.Data), "#!") {
			mode = 0o777
		}

		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(file, f.Data, mode); err != nil {
			return err
		}
	}

	return nil
}
