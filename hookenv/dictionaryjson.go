package hookenv

import (
	"bytes"
	"encoding/json"
	"fmt"
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
