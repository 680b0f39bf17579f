package console

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Candidate is a word that may stand where the cursor is, and what it is.
type Candidate struct{ Word, Help string }

// Wanted is a value that is to be completed.
type Wanted struct {
	Command, Value string            // the names of the command, and of its option or word
	Flags          map[string]string // the values of the options before it
}

// Complete returns what may stand in place of the last of the args; none where nothing is
// known, and shells look for files. What only an environment has comes from c.Names.
func (c Command) Complete(args []string) (found []Candidate, err error) {
	before, last, given := args[:len(args)-1], args[len(args)-1], ""
	if part, _, ok := narrow(c.Grammar, before); ok {
		c.Grammar = part
	}
	l := commandLine{flags: map[string]string{}}
	if l.node, err = c.Model(); err != nil {
		return nil, err
	}
	for _, word := range before {
		l.take(word)
	}
	if option, value, ok := strings.Cut(last, "="); ok && strings.HasPrefix(last, "--") && !l.wordsOnly {
		l.take(option)
		last, given = value, option+"="
	}
	for _, f := range c.candidates(l, last) {
		if strings.HasPrefix(f.Word, last) {
			found = append(found, Candidate{given + f.Word, f.Help})
		}
	}
	return found, nil
}

func (c Command) candidates(l commandLine, last string) (found []Candidate) {
	if strings.HasPrefix(last, "-") && !l.wordsOnly && l.pending == nil {
		for _, f := range slices.Concat(l.node.AllFlags(true)...) {
			found = append(found, Candidate{"--" + f.Name, f.Help})
		}
		return found
	}
	for _, child := range l.node.Children {
		for _, name := range append([]string{child.Name}, child.Aliases...) {
			if l.words == 0 && l.pending == nil && !child.Hidden {
				found = append(found, Candidate{name, child.Help})
			}
		}
	}
	v := l.value()
	if v == nil {
		return found
	}
	names := strings.FieldsFunc(v.Enum, func(r rune) bool { return r == ',' })
	if len(names) == 0 && c.Names != nil {
		names = c.Names(Wanted{Command: l.node.Name, Value: v.Name, Flags: l.flags})
	}
	for _, name := range names {
		found = append(found, Candidate{Word: name})
	}
	return found
}

// commandLine has read the words before the cursor.
type commandLine struct {
	node      *kong.Node
	pending   *kong.Flag // whose value comes next
	flags     map[string]string
	words     int
	wordsOnly bool // no option follows two dashes, nor a command that is passed on
}

func (l *commandLine) take(word string) {
	child := findCommand(l.node, word)
	switch {
	case l.pending != nil:
		l.flags[l.pending.Name], l.pending = word, nil
	case word == "--":
		l.wordsOnly = true
	case strings.HasPrefix(word, "-") && !l.wordsOnly:
		option, value, given := strings.Cut(word, "=")
		if l.pending = awaitsValue(l.node, option); given && l.pending != nil {
			l.take(value)
		}
	case child != nil && l.words == 0:
		l.node = child
	default:
		l.words++
		l.wordsOnly = l.wordsOnly || isPassthrough(l.node)
	}
}

// value returns what the next word is a value of, if anything; the last positional takes as many as there are.
func (l *commandLine) value() *kong.Value {
	all := l.node.Positional
	switch n := len(all); {
	case l.pending != nil:
		return l.pending.Value
	case l.words < n:
		return all[l.words]
	case n > 0 && all[n-1].IsCumulative():
		return all[n-1]
	}
	return nil
}

// Model returns kong's model of the command line, with all that --help says.
func (c Command) Model() (*kong.Node, error) {
	parser, err := c.newParser()
	if err != nil {
		return nil, err
	}
	return parser.Model.Node, nil
}
