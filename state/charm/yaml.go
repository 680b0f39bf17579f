package charm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"bijou/state/number"
)

// unmarshalCharm reads a file of a charm. If a dictionary has a key several times, the last value counts;
// see dropDuplicateKeys.
func unmarshalCharm(data []byte, target any) error {
	return unmarshalDocument(data, target, dropDuplicateKeys)
}

// unmarshalPart reads a file of a charm, as unmarshalCharm does. If key is not empty, it reads only the part of
// the file under the key. charmcraft.yaml has the contents of other files in parts with such keys.
func unmarshalPart(data []byte, key string, target any) error {
	if key == "" {
		return unmarshalCharm(data, target)
	}

	var parts map[string]yaml.Node
	if err := unmarshalCharm(data, &parts); err != nil {
		return err
	}

	// If the file lacks the key, the part counts as null.
	part := parts[key]
	return DecodeYAML(&part, target)
}

// unmarshalStrict reads an operator's file. It returns an error for a key that occurs twice, since the
// operator can correct it.
func unmarshalStrict(data []byte, target any) error { return unmarshalDocument(data, target, nil) }

// unmarshalDocument reads one YAML document of limited size. If change is not nil, it calls change before it
// decodes the document. An empty document does not change the target. yaml.v3 itself limits the depth and the
// expansion of aliases.
func unmarshalDocument(data []byte, target any, change func(*yaml.Node)) error {
	doc, err := parseDocument(data)
	if err != nil {
		return err
	}
	if doc == nil {
		return nil
	}

	if change != nil {
		change(doc)
	}
	return DecodeYAML(doc, target)
}

// parseDocument parses one YAML document. It returns nil if the document is empty. It returns an error for a
// second document that is not empty.
func parseDocument(data []byte) (*yaml.Node, error) {
	docs, err := ParseYAML(data)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		return nil, nil
	}
	if len(docs) > 1 {
		return nil, fmt.Errorf("line %d: a second document begins here; want only one document", docs[1].Line)
	}

	return docs[0], nil
}

// parseValue returns the value of an operator's YAML document in JSON's types, with numbers as json.Number. It
// returns nil for an empty document.
func parseValue(data []byte) (value any, err error) {
	doc, err := parseDocument(data)
	if err != nil {
		return nil, err
	}
	if doc == nil {
		return nil, nil
	}

	defer recoverParser(&err)
	value, err = number.FromYAML(doc)
	return value, shortenError(err)
}

// DecodeYAML does what n.Decode does. Its errors fit into one line, and name types in words instead of Go's
// types.
func DecodeYAML(n *yaml.Node, target any) (err error) {
	defer recoverParser(&err)
	return shortenError(n.Decode(target))
}

// recoverParser converts a parser's panic into an error. It must be deferred. Hostile input must not crash an
// agent.
func recoverParser(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("cannot parse YAML: %v", p)
	}
}

// ParseYAML parses the YAML documents of a file of at most MaxYAML bytes. It leaves out documents that are empty
// or null. It returns an error if a dictionary has more than maxKeys keys.
func ParseYAML(data []byte) (docs []*yaml.Node, err error) {
	if len(data) > MaxYAML {
		return nil, fmt.Errorf("too big: %s, at most %s", formatSize(int64(len(data))), formatSize(MaxYAML))
	}
	defer recoverParser(&err)
	decoder := yaml.NewDecoder(bytes.NewReader(data))

	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}

		if err != nil {
			return nil, err
		}
		if err := checkKeys(&doc); err != nil {
			return nil, err
		}

		if len(doc.Content) == 1 && doc.Content[0].ShortTag() != "!!null" {
			docs = append(docs, &doc)
		}
	}
}

// maxKeys is how many keys a dictionary can have. yaml.v3 compares each key with all other keys.
const maxKeys = 5000

// checkKeys returns an error if a dictionary has too many keys. It does not follow aliases, since their
// nodes are checked where they are defined.
func checkKeys(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode && len(n.Content)/2 > maxKeys {
		return fmt.Errorf("line %d: a dictionary has %d keys; the limit is %d", n.Line, len(n.Content)/2, maxKeys)
	}

	for _, child := range n.Content {
		if err := checkKeys(child); err != nil {
			return err
		}
	}

	return nil
}

// dropDuplicateKeys keeps only the last entry for each plain key, as Python's YAML does. It does so in all
// dictionaries of the node, and compares the keys' texts.
func dropDuplicateKeys(n *yaml.Node) {
	for _, child := range n.Content {
		dropDuplicateKeys(child)
	}
	if n.Kind != yaml.MappingNode {
		return
	}

	last := map[string]int{} // index of the last entry, by key
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; isPlainKey(key) {
			last[key.Value] = i
		}
	}

	kept := n.Content[:0]
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; !isPlainKey(key) || last[key.Value] == i {
			kept = append(kept, key, n.Content[i+1])
		}
	}
	n.Content = kept
}

// isPlainKey reports whether the key is a scalar except "<<", which merges dictionaries.
func isPlainKey(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.ShortTag() != "!!merge"
}

// maxErrorText is the length in bytes to which a parser's errors are shortened. Hostile documents can cause
// many long errors.
const maxErrorText = 300

// shortenError makes a *yaml.TypeError, which is a list of errors, short enough for a log line, and translates
// its errors about types with describeMismatch. It returns all other errors, and nil, unchanged.
func shortenError(err error) error {
	wrong, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return err
	}

	text := typeMismatch().ReplaceAllStringFunc(strings.Join(wrong.Errors, "; "), describeMismatch)
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "..."
	}
	return errors.New(text)
}

// typeMismatch matches the error of yaml.v3 about a value of the wrong type. Its groups are the value's tag,
// the beginning of a scalar, and Go's name of the expected type.
var typeMismatch = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("cannot unmarshal !!([a-z]+)(?: `([^`]*)`)? into ([^ ;]+)")
})

// describeMismatch translates an error of yaml.v3, which typeMismatch has matched, into the words of
// Option.typeError: "cannot unmarshal !!seq into string" becomes "a list is not a string".
func describeMismatch(complaint string) string {
	groups := typeMismatch().FindStringSubmatch(complaint)
	tag := groups[1]
	given := strconv.Quote(groups[2])
	goType := groups[3]

	switch tag {
	case "seq":
		given = "a list"
	case "map":
		given = "a dictionary"
	}

	wanted := map[string]string{"string": "a string", "bool": "a boolean (true or false)"}[goType]
	switch {
	case wanted != "":
		// The variable wanted already has the words.
	case strings.HasPrefix(goType, "[]"):
		wanted = "a list"
	case strings.Contains(goType, "int"):
		wanted = "an int"
	default:
		wanted = "a dictionary"
	}

	return given + " is not " + wanted
}

// boolYAML is a boolean in a file of a charm.
type boolYAML bool

// UnmarshalYAML accepts a boolean, with or without quotes.
func (b *boolYAML) UnmarshalYAML(n *yaml.Node) error { return decodeScalar(n, Boolean, (*bool)(b)) }

// intYAML is an integer in a file of a charm.
type intYAML int64

// UnmarshalYAML accepts an integer, with or without quotes.
func (i *intYAML) UnmarshalYAML(n *yaml.Node) error { return decodeScalar(n, Int, (*int64)(i)) }

// decodeScalar reads a value as for an option of type t. It does not change the target if the value is null or
// empty.
func decodeScalar[T bool | int64](n *yaml.Node, t OptionType, target *T) error {
	value, err := Option{Type: t}.fromNode(n)
	if err != nil {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, err)}}
	}

	if v, ok := value.(T); ok {
		*target = v
	}
	return nil
}
