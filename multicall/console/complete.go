package console

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// CompleteOption is the first argument of who asks what may stand in place of the last: a shell.
const CompleteOption = "--complete"

// Wanted is a value that is to be completed.
type Wanted struct {
	Command, Value string            // the names of the command, and of its option or word
	Flags          map[string]string // the values of the options before it
}

type candidate struct{ word, help string }

// complete prints the words that can stand in place of the last argument, one a line, each with a tab and
// its help. It prints nothing if it knows none; then shells complete file names. c.Names returns names that
// only an environment knows.
func (c Command) complete(w io.Writer, args []string) error {
	n := max(0, len(args)-1)
	given := ""
	before, last := args[:n:n], strings.Join(args[n:], "")
	if option, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(option, "--") {
		before = append(before, option)
		last = value
		given = option + "="
	}

	parser, err := c.newParser(before)
	if err != nil {
		return err
	}
	trace, err := kong.Trace(parser, append(before, last))
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}

	for _, f := range c.candidates(trace, last) {
		if strings.HasPrefix(f.word, last) {
			fmt.Fprintf(w, "%s%s\t%s\n", given, f.word, f.help)
		}
	}

	return ErrHelped
}

// candidates returns the words that can stand in place of the last one. It depends on the part of the
// grammar for which kong took that word, if it took it.
func (c Command) candidates(trace *kong.Context, last string) (found []candidate) {
	node := trace.Selected()
	if node == nil {
		node = trace.Model.Node
	}
	at := trace.Path[len(trace.Path)-1]
	n := len(node.Positional)

	switch taken := trace.Error == nil; {
	case taken && at.Positional != nil:
		return c.values(trace, node, at.Positional)
	case strings.HasPrefix(last, "-"):
		for _, f := range slices.Concat(node.AllFlags(true)...) {
			found = append(found, candidate{"--" + f.Name, f.Help})
		}
		return found
	case taken && at.Flag != nil:
		return c.values(trace, node, at.Flag.Value)
	case taken && at.Command != nil:
		node = at.Parent
	case len(at.Remainder()) > 1: // it stands behind what nobody knows
		return nil
	case n > 0 && node.Positional[n-1].IsCumulative(): // kong does not resume a list after an option
		return c.values(trace, node, node.Positional[n-1])
	}

	for _, child := range node.Children {
		for _, name := range append([]string{child.Name}, child.Aliases...) {
			if !child.Hidden {
				found = append(found, candidate{name, child.Help})
			}
		}
	}

	return found
}

// values returns the candidates for the value: words of its own, or names.
func (c Command) values(trace *kong.Context, node *kong.Node, v *kong.Value) (found []candidate) {
	flags := map[string]string{}
	for _, p := range trace.Path {
		if p.Flag != nil {
			flags[p.Flag.Name] = fmt.Sprint(trace.FlagValue(p.Flag))
		}
	}

	names := strings.FieldsFunc(v.Enum, func(r rune) bool { return r == ',' })
	if len(names) == 0 && c.Names != nil {
		names = c.Names(Wanted{Command: node.Name, Value: v.Name, Flags: flags})
	}
	for _, name := range names {
		found = append(found, candidate{word: name})
	}
	return found
}
