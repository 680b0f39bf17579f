package charm

import (
	"fmt"

	"gopkg.in/yaml.v3"
)

type boolYAML bool

// UnmarshalYAML takes a boolean, or one in quotes.
func (b *boolYAML) UnmarshalYAML(n *yaml.Node) error { return decodeScalar(n, Boolean, (*bool)(b)) }

type intYAML int64

// UnmarshalYAML takes an int, or one in quotes.
func (i *intYAML) UnmarshalYAML(n *yaml.Node) error { return decodeScalar(n, Int, (*int64)(i)) }

// decodeScalar reads a value as an option of that type does; null changes nothing.
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
