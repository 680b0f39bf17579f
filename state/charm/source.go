package charm

import (
	"cmp"
	"io/fs"

	"gopkg.in/yaml.v3"
)

const dispatchText = "#!/bin/sh\nPYTHONPATH=lib:venv${PYTHONPATH:+:$PYTHONPATH} exec ./src/charm.py\n"

// makeFiles makes what charmcraft writes into a charm, and the ops library reads: the parts of
// charmcraft.yaml as files of their own, and the file that runs the charm's program.
func (c *Charm) makeFiles(read func(string) ([]byte, error)) error {
	add := func(name, text string, mode fs.FileMode) {
		if _, there := c.files[name]; !there {
			c.made = append(c.made, item{name: name, mode: mode, text: text})
		}
	}
	if c.hasFile("src/charm.py") && len(c.Hooks()) == 0 {
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
