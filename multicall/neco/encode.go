package neco

import (
	"encoding/json"
	"fmt"

	"gopkg.in/yaml.v3"

	"bijou/multicall/console"
	"bijou/state/sanitize"
)

// encode prints data as YAML, or as JSON if that is the format; both name things by their
// JSON tags.
func (o *operator) encode(format string, data any) error {
	text, err := encodeText(format, data)
	if err != nil {
		return err
	}
	return o.print(text)
}

// printTable prints the table, or the data in another format than text.
func (o *operator) printTable(format string, data any, table *console.Table) error {
	if format != "text" {
		return o.encode(format, data)
	}
	return table.Write(o.streams.Out, console.CanColour(o.streams.Out))
}

func encodeText(format string, data any) (string, error) {
	encoded, err := json.Marshal(data)
	if err != nil {
		return "", fmt.Errorf("internal error: %w", err)
	}
	text := sanitize.EscapeJSON(string(encoded))
	if format == "json" {
		return text + "\n", nil
	}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil { // JSON is YAML; its order stays
		return "", fmt.Errorf("internal error: %w", err)
	}
	clearStyle(&node)
	out, err := sanitize.MarshalYAML(&node)
	return string(out), err
}

// clearStyle drops JSON's braces and quotes.
func clearStyle(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		clearStyle(c)
	}
}
