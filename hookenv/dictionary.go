package hookenv

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxSettingSize limits one value, in bytes.
const maxSettingSize = 16 << 20

var errNotText = errors.New("settings hold UTF-8 text without NUL bytes; encode it first (base64, for instance)")

// ParseDictionary reads the first document of a YAML or JSON file as changes of settings: text as
// it is written, null to delete. An empty file has none.
func ParseDictionary(data []byte) (map[string]*string, error) {
	if err := CheckText(string(data)); err != nil {
		return nil, err
	}
	if changes, ok, err := parseJSONObject(data); ok {
		return changes, err
	}
	var document yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(data)).Decode(&document)
	if errors.Is(err, io.EOF) {
		return map[string]*string{}, nil
	}
	if fault := jsonError(data, err); fault != nil {
		return nil, fault
	}
	if err != nil {
		return nil, err // yaml says "yaml: " itself, and charms look for it
	}
	return parseMapping(resolveAlias(document.Content[0]))
}

func parseMapping(node *yaml.Node) (map[string]*string, error) {
	changes := map[string]*string{}
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return changes, nil
	}
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("yaml: line %d: expected a dictionary of settings", node.Line)
	}
	for i := 0; i < len(node.Content); i += 2 {
		key, value := resolveAlias(node.Content[i]), resolveAlias(node.Content[i+1])
		if key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("yaml: line %d: the value of %q is not text", value.Line, key.Value)
		}
		text, err := scalarText(value)
		if err != nil {
			return nil, err
		}
		if err := AddChange(changes, key.Value, text, value.Tag == "!!null"); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

func scalarText(node *yaml.Node) (text string, err error) {
	if node.Tag != "!!binary" {
		return node.Value, nil
	}
	err = node.Decode(&text)
	return text, err
}

func resolveAlias(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// AddChange notes in changes that the key gets the value, or is deleted: with remove, or by an
// empty value, as KEY= does. It refuses what is not text, has no name, or is too long.
func AddChange(changes map[string]*string, key, value string, remove bool) error {
	if err := CheckText(key, value); err != nil {
		return fmt.Errorf("cannot set %q: %w", key, err)
	}
	if key == "" {
		return errors.New("cannot set a key without a name")
	}
	if len(value) > maxSettingSize {
		return fmt.Errorf("cannot set %q: its value has %d bytes, and 16 MiB is the most", key, len(value))
	}
	changes[key] = &value
	if remove || value == "" {
		changes[key] = nil
	}
	return nil
}

// CheckText returns an error if one of the texts is not UTF-8, or has a NUL in it.
func CheckText(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return errNotText
		}
	}
	return nil
}
