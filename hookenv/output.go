package hookenv

import (
	"encoding/json"
	"slices"
	"strings"
)

// The output formats.
const (
	FormatSmart = "smart"
	FormatJSON  = "json"
	FormatYAML  = "yaml"
	formatShell = "shell"
)

// FormatOption is the option of the output format, which every printing tool has.
type FormatOption struct {
	Format string // "" if the caller did not say
}

// AddFlag declares --format with all formats.
func (o *FormatOption) AddFlag(f *FlagSet) {
	o.AddFlagWith(f, FormatSmart, FormatJSON, FormatYAML, formatShell)
}

// AddFlagWith declares --format with these formats, two at least.
func (o *FormatOption) AddFlagWith(f *FlagSet, formats ...string) {
	last := len(formats) - 1
	help := strings.Join(formats[:last], ", ") + " or " + formats[last]
	f.add(option{names: []string{"format"}, arg: "FORMAT", help: help, set: func(name, value string) error {
		if !slices.Contains(formats, value) {
			return UsageErrorf("invalid value %q for option %s: unknown format %q", value, name, value)
		}
		o.Format = value
		return nil
	}})
}

// Print writes a value to stdout in the format that was asked for. It takes nil, a string, a list of strings, a boolean, a number, or a dictionary.
func (o *FormatOption) Print(inv *Invocation, value any) error {
	text, err := renderValue(o.FormatFor(inv, value), value)
	if err != nil {
		return err
	}
	inv.Stdout.Write(text)
	return nil
}

// FormatFor returns the format in which the value is printed: the classic dialect prints a dictionary as JSON unless asked otherwise.
func (o *FormatOption) FormatFor(inv *Invocation, value any) string {
	if o.Format != "" {
		return o.Format
	}
	if isDictionary(value) && !inv.IsModern() {
		return FormatJSON
	}
	return FormatSmart
}

func isDictionary(value any) bool {
	switch value.(type) {
	case map[string]string, map[string]any:
		return true
	}
	return false
}

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

// renderSmart prints what a script wants to read: nothing for nothing, strings as they are, a list
// one item a line.
func renderSmart(value any) ([]byte, error) {
	text := ""
	switch v := value.(type) {
	case nil:
	case string:
		text = v
	case []string:
		text = strings.Join(v, "\n")
	case bool:
		text = map[bool]string{true: "True", false: "False"}[v]
	default:
		return renderYAML(value)
	}
	if text == "" {
		return nil, nil
	}
	return []byte(text + "\n"), nil
}

// renderJSON prints one line. "<", ">" and "&" come as \u003c and the like, as charms know it from
// Juju.
func renderJSON(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	return append(text, '\n'), err
}
