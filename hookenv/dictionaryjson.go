package hookenv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode"
	"unicode/utf16"
)

// parseObject reads a file that is one JSON object as such: nearly all JSON is
// YAML too, but its escapes and line separators mean other things there. ok is
// false for anything else.
func parseObject(data []byte) (changes map[string]*string, ok bool, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) || !json.Valid(data) {
		return nil, false, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return nil, false, nil // a number without end, or the like: YAML may read it
	}
	if err := checkEscapes(data); err != nil {
		return nil, true, err
	}
	changes = map[string]*string{}
	for key, value := range values {
		var text string
		switch value := value.(type) {
		case nil:
		case string:
			text = value
		case json.Number, bool:
			text = fmt.Sprint(value)
		default:
			return nil, true, fmt.Errorf("yaml: line 1: the value of %q is not text", key)
		}
		if err := change(changes, key, text, value == nil); err != nil {
			return nil, true, err
		}
	}
	return changes, true, nil
}

// checkEscapes refuses valid JSON that holds half of a surrogate pair. It is no
// text: U+FFFD would silently take its place, and it is what programs write for
// bytes that are not UTF-8 (Python for one).
func checkEscapes(data []byte) error {
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		first := codeUnit(data[i:])
		if !utf16.IsSurrogate(first) {
			i++ // what is escaped may be a backslash
			continue
		}
		if utf16.DecodeRune(first, codeUnit(data[i+6:])) == unicode.ReplacementChar {
			return errNotText
		}
		i += 11
	}
	return nil
}

// codeUnit is what \uXXXX at the beginning stands for, -1 if there is none.
func codeUnit(data []byte) rune {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return -1
	}
	code, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(code)
}
