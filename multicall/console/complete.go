package console

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// CompleteOption is the first argument of a shell's call that requests the completions of the last argument.
const CompleteOption = "--complete"

// Wanted names a value to complete for a shell.
type Wanted struct {
	Command string            // the command's name
	Value   string            // the name of its option or positional argument
	Flags   map[string]string // the values of the options before it
}

// candidate is a word that can replace the last word.
type candidate struct{ word, help string }

// complete prints the words that can replace the last argument. Each line has a word, a tab and the word's help. If
// complete knows no such words, it prints nothing, so that shells complete file names. After success it returns
// ErrHelped.
func (c Command) complete(w io.Writer, args []string) error {
	count := max(0, len(args)-1)
	before := args[:count:count]           // without capacity, so that append below does not overwrite args
	last := strings.Join(args[count:], "") // empty without arguments

	// Complete the value in --option=value as if it were a separate argument. The shell replaces the whole argument.
	prefix := ""
	option, value, hasValue := strings.Cut(last, "=")
	if hasValue && strings.HasPrefix(option, "--") {
		before = append(before, option)
		last = value
		prefix = option + "="
	}

	parser, err := c.newParser(before)
	if err != nil {
		return err
	}
	trace, err := kong.Trace(parser, append(before, last))
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}

	for _, found := range c.candidates(trace, last) {
		if strings.HasPrefix(found.word, last) {
			fmt.Fprintf(w, "%s%s\t%s\n", prefix, found.word, found.help)
		}
	}

	return ErrHelped
}

// candidates returns the words that can replace the last word. trace is kong's parse of the command line with
// that word. If kong accepted the word, the end of trace.Path shows whether the word is a positional
// argument, a flag's value, or a command. If kong did not accept the word, it may begin a flag, a further
// value of a list, or a command.
func (c Command) candidates(trace *kong.Context, last string) []candidate {
	node := trace.Selected()
	if node == nil {
		node = trace.Model.Node
	}
	end := trace.Path[len(trace.Path)-1]
	accepted := trace.Error == nil

	// A positional argument can begin with a dash, but the value of a flag cannot.
	if accepted && end.Positional != nil {
		return c.values(trace, node, end.Positional)
	}
	if strings.HasPrefix(last, "-") {
		return listFlags(node)
	}
	if accepted && end.Flag != nil {
		return c.values(trace, node, end.Flag.Value)
	}
	// The word is a command, but other commands may begin with it.
	if accepted && end.Command != nil {
		return listCommands(end.Parent)
	}

	// There is an unknown word before the last word.
	if len(end.Remainder()) > 1 {
		return nil
	}
	// kong does not resume a list after an option, but parseWords does.
	n := len(node.Positional)
	if n > 0 && node.Positional[n-1].IsCumulative() {
		return c.values(trace, node, node.Positional[n-1])
	}
	return listCommands(node)
}

// listFlags returns the flags of a command and its parents, without hidden ones.
func listFlags(node *kong.Node) (found []candidate) {
	const withoutHidden = true
	for _, f := range slices.Concat(node.AllFlags(withoutHidden)...) {
		found = append(found, candidate{word: "--" + f.Name, help: f.Help})
	}
	return found
}

// listCommands returns the names and aliases of the commands below a node, without hidden ones.
func listCommands(node *kong.Node) (found []candidate) {
	for _, child := range node.Children {
		for _, name := range append([]string{child.Name}, child.Aliases...) {
			if !child.Hidden {
				found = append(found, candidate{word: name, help: child.Help})
			}
		}
	}

	return found
}

// values returns the candidates for a flag's or positional argument's value: the words of its enum or,
// without an enum, the names that c.Names returns.
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
