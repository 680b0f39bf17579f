package proof

import (
	_ "embed"
	"maps"
	"slices"

	"gopkg.in/yaml.v3"

	"bijou/state/charm"
)

//go:embed keys.yaml
var keysText []byte

// checkDocuments reads the charm's YAML files into p.documents. It reports the errors of all files, since deploy
// stops at the first invalid file, and checks the keys.
func (p *proofer) checkDocuments() {
	known := map[string]map[string]any{}
	if err := yaml.Unmarshal(keysText, &known); err != nil {
		panic("internal error: keys.yaml: " + err.Error())
	}

	for _, file := range []string{"metadata.yaml", "charmcraft.yaml", "config.yaml", "actions.yaml"} {
		if !p.has(file) {
			continue
		}

		data := p.read(file)
		documents, err := charm.ParseYAML(data)
		switch {
		case err != nil:
			// The error is reported below.
		case file == "config.yaml":
			_, err = charm.ParseConfig(data)
		case file == "actions.yaml":
			_, err = charm.ParseActions(data)
		}

		if len(documents) > 0 {
			p.documents[file] = documents[0].Content[0]
			p.checkKeys(file, p.documents[file], known[file])
		}

		if err != nil {
			p.addLocated(Error, file, err.Error())
		}
	}
}

// checkKeys reports unknown and duplicate keys of a dictionary, and of the dictionaries in it.
func (p *proofer) checkKeys(file string, n *yaml.Node, known map[string]any) {
	seen := map[string]bool{}
	for key, value := range pairs(n) {
		if seen[key.Value] {
			p.add(Warning, file, key.Line, "key %q appears twice; only the last one counts", key.Value)
		}

		seen[key.Value] = true
		inner, isKnown := known[key.Value]
		if !isKnown {
			inner, isKnown = known["*"]
		}
		if !isKnown && len(known) > 0 {
			p.addUnknownKey(file, n, key, known)
		}
		dictionary, _ := inner.(map[string]any)
		p.checkKeys(file, value, dictionary)
	}
}

func (p *proofer) addUnknownKey(file string, n, key *yaml.Node, known map[string]any) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool {
		return name == "*" || name == "?"
	})
	meant := suggest(key.Value, names)
	if _, isOpen := known["?"]; !isOpen || len(key.Value) > 3 && meant != "" {
		p.add(Warning, file, key.Line, "unknown key %q is ignored%s", key.Value, meant)
		p.mendKey(file, n, key, names)
	}
}

// pairs yields the keys of a dictionary with their values. It yields nothing for any other node.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if n.Content[i].ShortTag() != "!!merge" && !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// declared returns the names that the files declare below the given keys.
func (p *proofer) declared(files []string, below ...string) (names []string) {
	for _, file := range files {
		for key, value := range pairs(p.documents[file]) {
			for name := range pairs(value) {
				if slices.Contains(below, key.Value) {
					names = append(names, name.Value)
				}
			}
		}
	}

	return names
}
