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
)

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

// jsonError says what is wrong with a file that was meant as JSON, given the error of reading it as
// YAML; nil if it was not meant so.
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

// convertValues makes changes of settings: text as what it stands for, null to delete, all else as
// the JSON that it is.
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
			i++ // what is escaped may be a backslash
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
