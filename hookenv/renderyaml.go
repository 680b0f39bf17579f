package hookenv

import (
	"bytes"
	"strings"

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
	return b.Bytes(), err
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
// an empty first line.
type yamlText string

// MarshalYAML implements yaml.Marshaler.
func (t yamlText) MarshalYAML() (any, error) {
	s := string(t)
	block := strings.Contains(s, "\n")
	if s == "<<" || block && (s[0] == '\n' || strings.ContainsAny(s, "\t\u0085\u2028\u2029")) {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}, nil
	}
	return s, nil
}
