package sanitize

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// MarshalYAML returns the value as YAML without such characters in its texts: they are
// escapes in double-quoted scalars.
func MarshalYAML(value any) ([]byte, error) {
	text, err := yaml.Marshal(value)
	if err != nil || strings.IndexFunc(string(text), isHarmfulInYAML) < 0 {
		return text, err
	}
	var n yaml.Node
	if err := n.Encode(value); err != nil {
		return nil, err
	}
	quoteHarmful(&n)
	if text, err = yaml.Marshal(&n); err != nil {
		return nil, err
	}
	return []byte(escape(string(text), func(r rune) string {
		if r == '\n' {
			return "\n"
		}
		return fmt.Sprintf(`\u%04X`, r)
	})), nil
}

// isHarmfulInYAML leaves out the ends of YAML's own lines.
func isHarmfulInYAML(r rune) bool { return isHarmful(r) && r != '\n' }

func quoteHarmful(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && strings.IndexFunc(n.Value, isHarmfulInYAML) >= 0 {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, member := range n.Content {
		quoteHarmful(member)
	}
}
