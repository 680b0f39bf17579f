package hookenv

import (
	"fmt"
	"io/fs"
	"strings"
)

// Help returns the text that the tool prints for --help. It panics without the tool's text.
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
	text, err := fs.ReadFile(t.Manuals, "help/"+t.Name+".txt")
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return string(text)
}

// Summary returns what the tool does in one line, as a part of a sentence: "print a secret".
func (t Tool) Summary() string {
	_, text, _ := strings.Cut(t.manual(), "\n\n")
	sentence, _, _ := strings.Cut(text, ".\n")
	return strings.ToLower(sentence[:1]) + sentence[1:]
}

// formatOption returns an option as it is typed: "-r, --relation VALUE".
func formatOption(o option) string {
	var names []string
	for _, name := range o.names {
		names = append(names, withDashes(name))
	}
	return strings.TrimSpace(strings.Join(names, ", ") + " " + o.arg)
}
