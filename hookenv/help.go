package hookenv

import (
	"fmt"
	"io/fs"
	"strings"
)

// Help returns the text that the tool prints for --help.
func (t Tool) Help() string {
	text, examples, _ := strings.Cut(t.manual(), "\nExamples:\n")
	var b strings.Builder
	b.WriteString(text + "\nOptions:\n")
	flags, _ := t.declareFlags()
	for _, o := range flags.options {
		if o.help != "" {
			fmt.Fprintf(&b, "  %s\n        %s\n", formatOption(o), o.help)
		}
	}
	b.WriteString("  -h, --help\n        print this and exit\n\nExamples:\n" + examples)
	return b.String()
}

func (t Tool) manual() string {
	if t.Manuals != nil {
		text, err := fs.ReadFile(t.Manuals, "help/"+t.Name+".txt")
		if err != nil {
			panic("internal error: " + err.Error())
		}
		return string(text)
	}
	text := fmt.Sprintf("Usage: %s\n\n%s\n", strings.TrimSpace(t.Name+" "+t.Usage), toSentence(t.Summary))
	if t.Notes != "" {
		text += "\n" + t.Notes + "\n"
	}
	return text + "\nExamples:\n  " + strings.Join(t.Examples, "\n  ") + "\n"
}

// formatOption returns an option as it is typed: "-r, --relation VALUE".
func formatOption(o option) string {
	var names []string
	for _, name := range o.names {
		names = append(names, withDashes(name))
	}
	return strings.TrimSpace(strings.Join(names, ", ") + " " + o.arg)
}

func toSentence(summary string) string {
	return strings.ToUpper(summary[:1]) + summary[1:] + "."
}
