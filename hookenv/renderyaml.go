package hookenv

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// renderYAML prints nothing for nothing, not "null": charms test for it.
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

// isHarmful reports whether the character breaks a line or turns the direction of what
// follows, and the encoder would write it as it is.
func isHarmful(r rune) bool {
	return r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r)
}

// escapeHarmful relies on yamlText, which has quoted whatever holds such a character.
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

func yamlValue(value any) any {
	switch v := value.(type) {
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

// yamlText is quoted where the encoder would write what is read back as another text, or not at
// all: it takes "<<" for plain text, and a literal block cannot have tabs, foreign line breaks or
// an empty first line. So is what has harmful characters.
type yamlText string

// MarshalYAML implements yaml.Marshaler.
func (t yamlText) MarshalYAML() (any, error) {
	s := string(t)
	block := strings.Contains(s, "\n")
	if s == "<<" || strings.ContainsFunc(s, isHarmful) || block && (s[0] == '\n' || strings.ContainsAny(s, "\t\u0085")) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}, nil
	}
	return s, nil
}
