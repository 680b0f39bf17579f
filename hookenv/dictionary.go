package hookenv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxSettingSize limits one value, in bytes.
const maxSettingSize = 16 << 20

var errNotText = errors.New(
	"settings can hold only UTF-8 text without NUL bytes; encode other data first, for example with base64")

// ParseDictionary parses the first document of a YAML or JSON file as changes of settings. Numbers and booleans keep the
// text in which they are written. null and an empty string delete their key. An empty file contains no changes.
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
	if jsonErr := jsonError(data, err); jsonErr != nil {
		return nil, jsonErr
	}
	if err != nil {
		return nil, err // begins with "yaml: ", which charms look for
	}

	return parseMapping(resolveAlias(document.Content[0]))
}

// parseMapping returns the pairs of a YAML dictionary as changes of settings. A null or empty value becomes nil, which
// deletes its key. A document that is null or empty contains no changes.
func parseMapping(node *yaml.Node) (map[string]*string, error) {
	changes := map[string]*string{}
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return changes, nil
	}
	if node.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("yaml: line %d: expected a dictionary of settings", node.Line)
	}

	for i := 0; i < len(node.Content); i += 2 {
		key := resolveAlias(node.Content[i])
		value := resolveAlias(node.Content[i+1])
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

// scalarText returns a scalar as text. It keeps a number or a boolean as it is written, and decodes a !!binary scalar.
func scalarText(node *yaml.Node) (text string, err error) {
	if node.Tag != "!!binary" {
		return node.Value, nil
	}
	err = node.Decode(&text)
	return text, err
}

// resolveAlias returns the node to which a YAML alias refers. It returns any other node unchanged.
func resolveAlias(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// AddChange adds the new value of a key to changes. If remove is true, or if the value is empty as in KEY=, it adds
// nil instead, which deletes the key. It returns an error if the key is empty, if key or value are not UTF-8 text
// without NUL bytes, or if the value is too long.
func AddChange(changes map[string]*string, key, value string, remove bool) error {
	if err := CheckText(key, value); err != nil {
		return fmt.Errorf("cannot set %q: %w", key, err)
	}
	if key == "" {
		return errors.New("cannot set a key without a name")
	}
	if len(value) > maxSettingSize {
		return fmt.Errorf("cannot set %q: the value has %d bytes; the limit is 16 MiB", key, len(value))
	}

	changes[key] = &value
	if remove || value == "" {
		changes[key] = nil
	}
	return nil
}

// CheckText returns an error if one of the texts is not UTF-8, or contains a NUL byte.
func CheckText(texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return errNotText
		}
	}
	return nil
}

// parseJSONObject parses a file that is a single JSON object as changes of settings. ok is false for any other file.
// A JSON object must not be parsed as YAML, where some escapes and line separators have a different meaning.
func parseJSONObject(data []byte) (changes map[string]*string, ok bool, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || !json.Valid(data) {
		return nil, false, nil
	}
	if err := checkSurrogates(data); err != nil {
		return nil, true, err
	}

	var values map[string]json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil {
		return nil, true, err
	}
	changes, err = convertValues(values)
	return changes, true, err
}

// jsonError returns an error for a file that is meant to be JSON: a list, or an object that is neither valid
// JSON nor valid YAML. It returns nil for any other file. yamlErr is the error of parsing the file as YAML, or nil.
func jsonError(data []byte, yamlErr error) error {
	text := bytes.TrimSpace(data)
	if json.Valid(text) && text[0] == '[' {
		return errors.New("json: expected a dictionary of settings")
	}

	// An object begins with "{" and a quoted key.
	inside, hasBrace := bytes.CutPrefix(text, []byte("{"))
	isObject := hasBrace && bytes.HasPrefix(bytes.TrimSpace(inside), []byte(`"`))
	if yamlErr == nil || !isObject {
		return nil
	}

	// The file is not valid JSON, or parseJSONObject would have parsed it.
	return fmt.Errorf("json: %w", json.Unmarshal(data, new(any)))
}

// convertValues returns the changes of settings in a JSON dictionary. null and an empty string delete the key. Any other
// string is set as its content, and every other value as its JSON text.
func convertValues(values map[string]json.RawMessage) (map[string]*string, error) {
	changes := map[string]*string{}
	for key, raw := range values {
		text := string(raw)
		if raw[0] == '"' {
			if err := json.Unmarshal(raw, &text); err != nil {
				return nil, err
			}
		}

		if err := AddChange(changes, key, text, bytes.Equal(raw, []byte("null"))); err != nil {
			return nil, err
		}
	}

	return changes, nil
}

// checkSurrogates returns an error for valid JSON that contains half of a surrogate pair. The decoder would
// silently replace that half with U+FFFD. Some programs, such as Python, write half a pair for bytes that are
// not UTF-8.
func checkSurrogates(data []byte) error {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}

		first := parseCodeUnit(data[i:])
		if !utf16.IsSurrogate(first) {
			i++ // also skip the escaped character, which can be a backslash
			continue
		}
		second := parseCodeUnit(data[i+6:])
		if utf16.DecodeRune(first, second) == unicode.ReplacementChar {
			return errNotText
		}
		i += 11 // with the loop's own step, skips both escapes of 6 bytes
	}

	return nil
}

// parseCodeUnit returns the UTF-16 code unit of a leading escape \uXXXX, or -1 if the data does not begin with one.
func parseCodeUnit(data []byte) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	code, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	if err != nil {
		return -1
	}

	return rune(code)
}

// ParseJSONBlob parses a JSON dictionary as changes of settings. null and an empty string delete their key. Other
// values that are not strings keep the text in which they are written.
func ParseJSONBlob(blob string) (map[string]*string, error) {
	if err := CheckText(blob); err != nil {
		return nil, err
	}

	var raw map[string]json.RawMessage
	d := json.NewDecoder(strings.NewReader(blob))
	err := d.Decode(&raw)
	isNull := err == nil && raw == nil
	if isNull || errors.As(err, new(*json.UnmarshalTypeError)) {
		return nil, errors.New("cannot read json_blob: the value is not a dictionary")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read json_blob: %w", err)
	}

	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("cannot read json_blob: more than one value")
	}
	if err := checkSurrogates([]byte(blob)); err != nil {
		return nil, err
	}

	return convertValues(raw)
}
