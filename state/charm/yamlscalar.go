package charm

import (
	"fmt"

	"gopkg.in/yaml.v3"
)

// boolYAML is a boolean in metadata.yaml, or one in quotes.
type boolYAML bool

// UnmarshalYAML takes both.
func (b *boolYAML) UnmarshalYAML(n *yaml.Node) error { return decodeScalar(n, Boolean, (*bool)(b)) }

// intYAML is an int in metadata.yaml, or one in quotes.
type intYAML int64

// UnmarshalYAML takes both.
func (i *intYAML) UnmarshalYAML(n *yaml.Node) error { return decodeScalar(n, Int, (*int64)(i)) }

// decodeScalar reads a value as an option of that type takes it; null changes nothing.
func decodeScalar[T bool | int64](n *yaml.Node, t OptionType, into *T) error {
	value, err := Option{Type: t}.fromNode(n)
	if err != nil {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %s", n.Line, err)}}
	}
	if v, ok := value.(T); ok {
		*into = v
	}
	return nil
}
