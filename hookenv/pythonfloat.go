package hookenv

import (
	"maps"
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// pythonFloat is printed as Python prints floats, which the tools of classic charms do too: a whole
// number keeps its point.
type pythonFloat float64

// String returns the float as Python's repr has it.
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

// ConvertFloats returns the value, for classic charms with all floats in it printed as Python
// prints them.
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
