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

// checkDocuments reads the first document of each of the charm's YAML files into p.documents, and checks its
// keys. It reports the parse errors of all files. Deploy itself would report only the first one.
func (p *proofer) checkDocuments() {
	// The known keys of each file. A key's value contains the known keys of its own dictionary.
	known := map[string]map[string]any{}
	if err := yaml.Unmarshal(keysText, &known); err != nil {
		panic("internal error: keys.yaml: " + err.Error())
	}

	for _, file := range []string{"metadata.yaml", "charmcraft.yaml", "config.yaml", "actions.yaml"} {
		if !p.has(file) {
			continue
		}

		data := p.read(file)
		docs, err := charm.ParseYAML(data)
		switch {
		case err != nil:
			// The error is reported at the end of the loop.
		case file == "config.yaml":
			_, err = charm.ParseConfig(data)
		case file == "actions.yaml":
			_, err = charm.ParseActions(data)
		}

		if len(docs) > 0 {
			// The node of a document has the document's content as its child.
			p.documents[file] = docs[0].Content[0]
			p.checkKeys(file, p.documents[file], known[file])
		}

		if err != nil {
			p.addLocated(Error, file, err.Error())
		}
	}
}

// checkKeys reports unknown and duplicate keys of a dictionary, and of the dictionaries in it. The argument
// known contains the known keys. In it, the key "*" stands for any key, and the key "?" means that other keys
// are allowed, unless they probably misspell a known key. If known is empty, all keys are allowed.
func (p *proofer) checkKeys(file string, dictionary *yaml.Node, known map[string]any) {
	seen := map[string]bool{}
	for key, value := range pairs(dictionary) {
		if seen[key.Value] {
			p.add(Warning, file, key.Line, "key %q appears twice; only the last one counts", key.Value)
		}
		seen[key.Value] = true

		below, isKnown := known[key.Value]
		if !isKnown {
			below, isKnown = known["*"]
		}
		if !isKnown && len(known) > 0 {
			p.addUnknownKey(file, dictionary, key, known)
		}

		// A key whose value is not a dictionary has no known keys below it.
		knownBelow, _ := below.(map[string]any)
		p.checkKeys(file, value, knownBelow)
	}
}

// addUnknownKey reports a key of the dictionary that is not known, and lets mendKey add a mend. If the dictionary
// allows other keys, it does so only for a key that is probably a misspelling.
func (p *proofer) addUnknownKey(file string, dictionary, key *yaml.Node, known map[string]any) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(name string) bool {
		return name == "*" || name == "?"
	})
	suggestion := suggest(key.Value, names)

	_, allowsOthers := known["?"]
	// A shorter key is similar to many words by chance.
	isMisspelling := suggestion != "" && len(key.Value) > 3
	if allowsOthers && !isMisspelling {
		return
	}

	p.add(Warning, file, key.Line, "unknown key %q is ignored%s", key.Value, suggestion)
	p.mendKey(file, dictionary, key, names)
}

// pairs yields the keys of a dictionary with their values, except merge keys. It yields nothing for nil and
// for any other node.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}

		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.ShortTag() == "!!merge" {
				continue
			}
			if !yield(key, n.Content[i+1]) {
				return
			}
		}
	}
}

// declared returns the names that the files declare below one of the given top-level keys.
func (p *proofer) declared(files []string, topKeys ...string) (names []string) {
	for _, file := range files {
		for key, value := range pairs(p.documents[file]) {
			if !slices.Contains(topKeys, key.Value) {
				continue
			}
			for name := range pairs(value) {
				names = append(names, name.Value)
			}
		}
	}

	return names
}
