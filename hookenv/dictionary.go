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

// parseMapping returns the pairs of a YAML dictionary; nil as the value of a null.
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

// AddChange notes in changes that the key gets the value. With remove, or for an empty value as in KEY=, it
// notes that the key is deleted. It returns an error if the key is empty, or if key or value are not UTF-8
// text or too long.
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

// parseJSONObject reads a file that is one JSON object as such: nearly all JSON is YAML too, but
// its escapes and line separators mean other things there. ok is false for anything else.
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

// jsonError returns the syntax error of a file that its writer meant as JSON; nil if nothing shows that.
// asYAML is the error of reading the file as YAML.
func jsonError(data []byte, asYAML error) error {
	text := bytes.TrimSpace(data)
	if json.Valid(text) && text[0] == '[' {
		return errors.New("json: expected a dictionary of settings")
	}

	inside, object := bytes.CutPrefix(text, []byte("{"))
	if asYAML == nil || !object || !bytes.HasPrefix(bytes.TrimSpace(inside), []byte(`"`)) {
		return nil
	}

	return fmt.Errorf("json: %w", json.Unmarshal(data, new(any)))
}

// convertValues returns the changes of settings that a dictionary describes: a string stands for itself,
// null deletes the key, and every other value is set as its JSON text.
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

// checkSurrogates refuses valid JSON that holds half of a surrogate pair. It is no text: U+FFFD
// would silently take its place, and programs write it for bytes that are not UTF-8 (Python for
// one).
func checkSurrogates(data []byte) error {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}

		first := parseCodeUnit(data[i:])
		if !utf16.IsSurrogate(first) {
			i++ // skips the escaped character too, which may be a backslash
			continue
		}
		if utf16.DecodeRune(first, parseCodeUnit(data[i+6:])) == unicode.ReplacementChar {
			return errNotText
		}
		i += 11
	}

	return nil
}

// parseCodeUnit returns the code of a leading \uXXXX, -1 if there is none.
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

// ParseJSONBlob reads one JSON dictionary of texts, numbers, booleans and nulls; numbers stay as they
// are written.
func ParseJSONBlob(blob string) (map[string]*string, error) {
	if err := CheckText(blob); err != nil {
		return nil, err
	}

	var raw map[string]json.RawMessage
	d := json.NewDecoder(strings.NewReader(blob))
	err := d.Decode(&raw)
	if errors.As(err, new(*json.UnmarshalTypeError)) || err == nil && raw == nil {
		return nil, errors.New("cannot read json_blob: it is no dictionary")
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
