package hookenv

import (
	"fmt"
	"strings"
)

// Help returns the text that the tool prints for --help.
func (t Tool) Help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: %s\n\n%s\n", strings.TrimSpace(t.Name+" "+t.Usage), toSentence(t.Summary))
	if t.Notes != "" {
		fmt.Fprintf(&b, "\n%s\n", t.Notes)
	}
	b.WriteString("\nOptions:\n")
	flags, _ := t.declareFlags()
	for _, o := range flags.options {
		if o.help != "" {
			fmt.Fprintf(&b, "  %s\n        %s\n", formatOption(o), o.help)
		}
	}
	b.WriteString("  -h, --help\n        print this and exit\n\nExamples:\n")
	for _, example := range t.Examples {
		fmt.Fprintf(&b, "  %s\n", example)
	}
	return b.String()
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
