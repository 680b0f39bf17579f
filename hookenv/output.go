package hookenv

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"bijou/state/number"
	"bijou/state/text"
)

// The output formats.
const (
	FormatSmart = "smart"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	formatShell = "shell"
)

// AddFormat declares the option --format with these formats. It needs at least two formats, or none, which stands for
// all formats.
func (f *FlagSet) AddFormat(formats ...string) {
	if len(formats) == 0 {
		formats = []string{FormatSmart, FormatJSON, FormatYAML, formatShell}
	}

	last := len(formats) - 1
	help := strings.Join(formats[:last], ", ") + " or " + formats[last]
	f.add(option{
		names: []string{"format"},
		arg:   "FORMAT",
		help:  help,
		set: func(name, value string) error {
			if !slices.Contains(formats, value) {
				return UsageErrorf("invalid value %q for option %s: unknown format %q", value, name, value)
			}
			f.Format = value
			return nil
		},
	})
}

// Print writes a value to stdout in the requested format. The value is nil, a string, a boolean, a number, a list or
// a dictionary. A [json.Number] is printed as it was written.
func (inv *Invocation) Print(value any) error {
	text, err := renderValue(inv.FormatFor(value), value)
	if err != nil {
		return err
	}
	inv.Stdout.Write(text)
	return nil
}

// PrintResult prints the value, or returns err if that is not nil.
func (inv *Invocation) PrintResult(value any, err error) error {
	if err != nil {
		return err
	}
	return inv.Print(value)
}

// FormatFor returns the format for printing the value: the requested one, or the tool's default. If
// there is neither, it returns JSON for a dictionary in the classic dialect, and otherwise smart.
func (inv *Invocation) FormatFor(value any) string {
	if inv.Format != "" {
		return inv.Format
	}
	if isDictionary(value) && !inv.IsModern() {
		return FormatJSON
	}

	return FormatSmart
}

// isDictionary reports whether the tools print the value as a dictionary.
func isDictionary(value any) bool {
	switch value.(type) {
	case map[string]string, map[string]any:
		return true
	}
	return false
}

// renderValue returns the value in one of the formats of --format.
func renderValue(format string, value any) ([]byte, error) {
	switch format {
	case FormatJSON:
		return renderJSON(value)
	case FormatYAML:
		return renderYAML(value)
	case formatShell:
		return renderShell(value)
	}

	return renderSmart(value)
}

// renderSmart returns a value in a form for scripts: a string with a newline after it, a boolean as True or False, and
// a []string with one item on each line. It returns an empty text for nil, and instead of a lone newline. It returns
// other values as YAML.
func renderSmart(value any) ([]byte, error) {
	text := ""
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		text = v
	case []string:
		text = strings.Join(v, "\n")
	case bool:
		text = "False"
		if v {
			text = "True"
		}
	default:
		return renderYAML(value)
	}

	if text == "" {
		return nil, nil
	}
	return []byte(text + "\n"), nil
}

// renderJSON returns the value as one line of JSON. It escapes "<", ">" and "&", as Juju does. It returns an
// error if a text in the value is not UTF-8.
func renderJSON(value any) ([]byte, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}

	if text.LosesBytes(encoded) {
		return nil, errors.New("cannot print JSON: a value is not UTF-8")
	}
	return append(encoded, '\n'), nil
}

// pythonFloat is a float that is printed as Python prints it, so 5 becomes 5.0. Classic charms expect this form.
type pythonFloat float64

// String returns the float as Python's repr prints it.
func (f pythonFloat) String() string {
	v := float64(f)
	if size := math.Abs(v); size != 0 && (size < 1e-4 || size >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}

	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// MarshalJSON implements json.Marshaler.
func (f pythonFloat) MarshalJSON() ([]byte, error) { return []byte(f.String()), nil }

// MarshalYAML implements yaml.Marshaler.
func (f pythonFloat) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: f.String()}, nil
}

// ConvertFloats returns the value. For classic charms it replaces a float, or the floats in a copy of a dictionary, so
// that they are printed as Python prints them. It does not replace floats in lists.
func (inv *Invocation) ConvertFloats(value any) any {
	if inv.IsModern() {
		return value
	}

	switch v := value.(type) {
	case float64:
		return pythonFloat(v)
	case map[string]any:
		v = maps.Clone(v)
		for key, member := range v {
			v[key] = inv.ConvertFloats(member)
		}
		return v
	}

	return value
}

// renderYAML returns the value as YAML, with escapes for the characters that isHarmful reports. For nil it returns an
// empty text instead of "null", since charms test for empty output.
func renderYAML(value any) ([]byte, error) {
	if value == nil {
		return nil, nil
	}

	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(yamlValue(value)); err != nil {
		return nil, err
	}

	err := e.Close()
	return escapeHarmful(b.String()), err
}

// isHarmful reports whether the character could break a line, or change the direction of the text after it. The YAML
// encoder does not escape such characters.
func isHarmful(r rune) bool {
	return r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// escapeHarmful escapes the harmful characters of YAML text. They are always in double quotes, since yamlText quotes
// every text that contains one.
func escapeHarmful(text string) []byte {
	var b bytes.Buffer
	for _, r := range text {
		if isHarmful(r) {
			fmt.Fprintf(&b, `\u%04X`, r)
		} else {
			b.WriteRune(r)
		}
	}

	return b.Bytes()
}

// yamlValue returns the value with texts, json.Numbers and float64s replaced by types that the YAML encoder prints as
// Juju does. It also replaces them in lists and dictionaries.
func yamlValue(value any) any {
	switch v := value.(type) {
	case json.Number, float64:
		return number.ForPrinting(v)
	case string:
		return yamlText(v)
	case []string:
		list := []yamlText{}
		for _, text := range v {
			list = append(list, yamlText(text))
		}
		return list
	case []any:
		list := []any{}
		for _, member := range v {
			list = append(list, yamlValue(member))
		}
		return list
	case map[string]string:
		dictionary := map[yamlText]any{}
		for key, text := range v {
			dictionary[yamlText(key)] = yamlText(text)
		}
		return dictionary
	case map[string]any:
		dictionary := map[yamlText]any{}
		for key, member := range v {
			dictionary[yamlText(key)] = yamlValue(member)
		}
		return dictionary
	}

	return value
}

// yamlText is a text that is quoted if the encoder's plain form would be read back differently, or not at
// all. Such texts are "<<", and texts of several lines with a tab, a NEL or an empty first line. A text is
// also quoted if it contains a harmful character.
type yamlText string

// MarshalYAML implements yaml.Marshaler. It puts the texts that [yamlText] describes into double quotes.
func (t yamlText) MarshalYAML() (any, error) {
	s := string(t)
	if s == "<<" || strings.ContainsFunc(s, isHarmful) || isMisreadBlock(s) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}, nil
	}

	return s, nil
}

// isMisreadBlock reports whether the encoder would write the text as a block of lines that YAML parsers misread.
func isMisreadBlock(s string) bool {
	return strings.Contains(s, "\n") && (s[0] == '\n' || strings.ContainsAny(s, "\t\u0085"))
}

// renderShell returns a value for a shell's eval. It returns a dictionary as lines VAR_KEY='value', sorted by
// key. It returns a number as one line, and other values as [renderSmart] does. It returns an error if two keys
// would become the same variable, or if a value cannot be encoded.
func renderShell(value any) ([]byte, error) {
	dictionary := map[string]any{}
	switch v := value.(type) {
	case map[string]string:
		for key, text := range v {
			dictionary[key] = text
		}
	case map[string]any:
		dictionary = v
	case int64, float64, int, pythonFloat, json.Number:
		return fmt.Appendln(nil, number.ForPrinting(v)), nil
	default:
		return renderSmart(value)
	}

	var b bytes.Buffer
	keys := map[string]string{} // by the name of their variable
	for _, key := range slices.Sorted(maps.Keys(dictionary)) {
		name := variableName(key)
		if other, isTaken := keys[name]; isTaken {
			return nil, fmt.Errorf("cannot print keys %q and %q for a shell: both would become the variable %s; use another format",
				other, key, name)
		}
		keys[name] = key

		text, err := shellText(dictionary[key])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s=%s\n", name, quoteWord(text))
	}

	return b.Bytes(), nil
}

// shellText returns one member of a dictionary as text for a shell. Dictionaries and lists become JSON, except that a
// []string has one item on each line.
func shellText(value any) (string, error) {
	switch v := value.(type) {
	case map[string]any, map[string]string, []any:
		text, err := renderJSON(v)
		return strings.TrimSuffix(string(text), "\n"), err
	case string:
		return v, nil
	}

	text, err := renderShell(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

// variableName returns the name of the shell variable for a key. The remote end of a relation chooses the keys, and
// scripts pass the output to eval. So a key must not become a command, or a variable on which shells and hooks
// depend, such as PATH.
func variableName(key string) string {
	replaceInvalid := func(r rune) rune {
		isAlphanumeric := r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r))
		if isAlphanumeric {
			return r
		}
		return '_'
	}

	return "VAR_" + strings.Map(replaceInvalid, key)
}

// quoteWord quotes a text for a shell.
func quoteWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
