package juju

import (
	"io/fs"
	"path"
	"testing"

	"github.com/alecthomas/kong"
)

// TestHelpTexts checks that each help text has a command.
func TestHelpTexts(t *testing.T) {
	parser, err := kong.New(&commands{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"help/juju.txt": true} // the help of juju itself
	var add func(n *kong.Node, folder string)
	add = func(n *kong.Node, folder string) {
		for _, c := range n.Children {
			name := path.Join(folder, c.Name)
			known[name+".txt"] = true
			add(c, name)
		}
	}
	add(parser.Model.Node, "help")
	err = fs.WalkDir(helpFiles, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !known[name] {
			t.Errorf("%s is of no command", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
