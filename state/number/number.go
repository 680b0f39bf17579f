// Package number decodes JSON and YAML without changing numbers, and compares such numbers. As a float64,
// 9007199254740993 would become 9007199254740992, and 5242880 would be printed as 5.24288e+06.
//
// If a value has no specific Go type, its numbers are of type [json.Number]. The package does no I/O.
package number

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// ErrNotJSON is the error for a value that JSON cannot express.
var ErrNotJSON = errors.New("JSON cannot express it")

// Unmarshal does what [json.Unmarshal] does, but decodes numbers into [json.Number] where doc has the type
// any. If other data follows the JSON value, Unmarshal has already changed doc when it returns the error.
func Unmarshal(data []byte, doc any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(doc); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.New("unexpected end of JSON input")
		}
		return err
	}

	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	return nil
}

// maxValues limits the values of one YAML document, with aliases resolved.
const maxValues = 50_000

// FromYAML returns the node's value in JSON's types: nil, bool, string, [json.Number], []any and
// map[string]any. A date stays a string. It returns [ErrNotJSON] for values that JSON cannot express, such as
// .nan or bytes that are not UTF-8.
func FromYAML(n *yaml.Node) (any, error) {
	left := maxValues
	return fromYAML(n, &left)
}

// fromYAML decodes a node. It counts down left, the number of values that may still be decoded. The limit is
// needed since aliases can repeat a node many times.
func fromYAML(n *yaml.Node, left *int) (any, error) {
	*left--
	if *left < 0 {
		return nil, fmt.Errorf("too big: more than %d values", maxValues)
	}

	switch n.Kind {
	case yaml.DocumentNode:
		return fromYAML(n.Content[0], left)
	case yaml.AliasNode:
		return fromYAML(n.Alias, left)
	case yaml.SequenceNode:
		return listFromYAML(n, left)
	case yaml.MappingNode:
		return dictionaryFromYAML(n, left)
	}

	return scalarFromYAML(n)
}

// listFromYAML decodes a list. left is as in fromYAML.
func listFromYAML(n *yaml.Node, left *int) (any, error) {
	list := make([]any, len(n.Content))
	for i, item := range n.Content {
		value, err := fromYAML(item, left)
		if err != nil {
			return nil, err
		}
		list[i] = value
	}

	return list, nil
}

// dictionaryFromYAML decodes a dictionary. left is as in fromYAML. It returns [ErrNotJSON] for a key that is not
// text. It does not check the keys of dictionaries that the yaml package merges into n. The yaml package also
// refuses duplicate keys.
func dictionaryFromYAML(n *yaml.Node, left *int) (any, error) {
	for i := 0; i < len(n.Content); i += 2 {
		switch key := n.Content[i]; key.ShortTag() {
		case "!!str", "!!merge":
			// The yaml package replaces a merge key, <<, with the members of the dictionaries at that key.
		default:
			return nil, fmt.Errorf("line %d: the key %s is not text: %w", key.Line, key.Value, ErrNotJSON)
		}
	}

	var members map[string]yaml.Node
	if err := n.Decode(&members); err != nil {
		return nil, err
	}

	dictionary := make(map[string]any, len(members))
	for key, member := range members {
		value, err := fromYAML(&member, left)
		if err != nil {
			return nil, err
		}
		dictionary[key] = value
	}

	return dictionary, nil
}

// scalarFromYAML returns the value of a scalar: nil, a number, a boolean or a text. It returns [ErrNotJSON]
// if JSON has no such value. It can return an error of the yaml package if the value does not fit its tag.
func scalarFromYAML(n *yaml.Node) (value any, err error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!int", "!!float":
		return numberFromYAML(n)
	case "!!bool":
		err = n.Decode(&value)
		return value, err
	}

	// Scalars with any other tag are texts.
	text := n.Value
	if n.ShortTag() == "!!binary" {
		if err := n.Decode(&text); err != nil {
			return nil, err
		}
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("line %d: bytes that are not UTF-8: %w", n.Line, ErrNotJSON)
	}
	return text, nil
}

// numberFromYAML returns a number with the digits of the document. It converts forms that only YAML has
// (0x1f, 1_000, +5). It returns [ErrNotJSON] for .inf and .nan.
func numberFromYAML(n *yaml.Node) (any, error) {
	plain := strings.ReplaceAll(strings.TrimPrefix(n.Value, "+"), "_", "")
	if isJSON(plain) {
		return json.Number(plain), nil
	}

	var value any
	if err := n.Decode(&value); err != nil {
		return nil, err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("line %d: the number %s: %w", n.Line, n.Value, ErrNotJSON)
	}

	return json.Number(data), nil
}

// isJSON reports whether the text is a number in JSON's form.
func isJSON(text string) bool {
	if text == "" {
		return false
	}
	beginsAsNumber := text[0] == '-' || '0' <= text[0] && text[0] <= '9'
	return beginsAsNumber && json.Valid([]byte(text))
}

// Normalize converts a value to JSON's types, with numbers as [json.Number]. It returns [ErrNotJSON] if JSON
// cannot express the value.
func Normalize(value any) (out any, err error) {
	data, err := json.Marshal(value)
	if err != nil || Unmarshal(data, &out) != nil {
		return nil, ErrNotJSON
	}
	return out, nil
}

// Compare returns -1 if a is less than b, 0 if they are equal, and 1 if a is greater. It compares exact
// values, even those that a float64 cannot represent.
func Compare(a, b json.Number) int { return rational(a).Cmp(rational(b)) }

// Whole returns a whole number, such as 3, 3.0 or 1e3, in plain digits. For any other number it returns n and ok
// false. A number out of the range of a float64 counts as the nearest float64, which is whole.
func Whole(n json.Number) (digits json.Number, ok bool) {
	value := rational(n)
	if !value.IsInt() {
		return n, false
	}
	return json.Number(value.Num().String()), true
}

// tiny is the limit for exact values. For numbers closer to 0, rational uses a float64, since the exact value
// of 1e-999999999 would fill the memory.
const tiny = 1e-300

// rational returns the exact value of a number. If the number is very close to 0, it returns the value of the
// nearest float64. If the number is out of range for a float64, it returns the largest float64, with the number's
// sign.
func rational(n json.Number) *big.Rat {
	f, _ := strconv.ParseFloat(n.String(), 64)
	if math.IsInf(f, 0) {
		return new(big.Rat).SetFloat64(math.Copysign(math.MaxFloat64, f))
	}
	if math.Abs(f) > tiny {
		if value, ok := new(big.Rat).SetString(n.String()); ok {
			return value
		}
	}

	return new(big.Rat).SetFloat64(f)
}

// Equal reports whether two values of JSON's types are the same. It compares numbers by value.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		other, ok := b.(json.Number)
		return ok && Compare(a, other) == 0
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, Equal)
	case map[string]any:
		other, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, other, Equal)
	}

	// a is nil, a boolean or a text, so it never equals a number, a list or a dictionary.
	switch b.(type) {
	case json.Number, []any, map[string]any:
		return false
	}
	return a == b
}

// Printable is a number that YAML and JSON print unchanged. It is needed since yaml.v3 treats a [json.Number]
// as a string, and quotes it.
type Printable json.Number

// MarshalJSON implements [json.Marshaler].
func (p Printable) MarshalJSON() ([]byte, error) { return json.Marshal(json.Number(p)) }

// MarshalYAML implements [yaml.Marshaler].
func (p Printable) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: string(p)}, nil
}

// ForPrinting returns a copy of a value of JSON's types with each [json.Number] and float64 as a [Printable].
// yaml.v3 would print the float64 5242880 as 5.24288e+06.
func ForPrinting(value any) any {
	switch v := value.(type) {
	case json.Number:
		return Printable(v)
	case float64:
		text, err := json.Marshal(v)
		if err != nil {
			return v // NaN or an infinity, which JSON does not have
		}
		return Printable(text)
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = ForPrinting(item)
		}
		return list
	case map[string]any:
		return DictionaryForPrinting(v)
	}

	return value
}

// DictionaryForPrinting is [ForPrinting] for a dictionary. It returns nil for nil.
func DictionaryForPrinting(dictionary map[string]any) map[string]any {
	if dictionary == nil {
		return nil
	}

	printable := make(map[string]any, len(dictionary))
	for key, member := range dictionary {
		printable[key] = ForPrinting(member)
	}
	return printable
}
