package hookenv

import (
	"encoding/json"
	"slices"
	"strings"
)

// The output formats.
const (
	formatSmart = "smart"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatShell = "shell"
)

// output is the option of the output format, which every printing tool has.
type output struct {
	format string // "" if the caller did not say
}

func (o *output) addFlag(f *flagSet) {
	o.addFlagWith(f, formatSmart, formatJSON, formatYAML, formatShell)
}

func (o *output) addFlagWith(f *flagSet, formats ...string) {
	last := len(formats) - 1
	help := strings.Join(formats[:last], ", ") + " or " + formats[last]
	f.add(option{names: []string{"format"}, arg: "FORMAT", help: help, set: func(name, value string) error {
		if !slices.Contains(formats, value) {
			return usagef("invalid value %q for option %s: unknown format %q", value, name, value)
		}
		o.format = value
		return nil
	}})
}

// print takes nil, a string, a list of strings, a boolean, a number, or a dictionary.
func (o *output) print(inv *invocation, value any) error {
	text, err := renderValue(o.formatFor(inv, value), value)
	if err != nil {
		return err
	}
	inv.stdout.Write(text)
	return nil
}

// The classic dialect prints several values as JSON unless asked otherwise.
func (o *output) formatFor(inv *invocation, value any) string {
	if o.format != "" {
		return o.format
	}
	if isDictionary(value) && !inv.isModern() {
		return formatJSON
	}
	return formatSmart
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
	case formatJSON:
		return renderJSON(value)
	case formatYAML:
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
