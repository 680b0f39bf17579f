package console

import (
	"errors"
	"fmt"

	"github.com/alecthomas/kong"
)

// ErrHelped says that help was asked for and printed; nothing else is to be done.
var ErrHelped = errors.New("help was printed")

// Command describes one applet's command line.
type Command struct {
	Name    string
	Summary string // what it is, and examples
	Grammar any    // pointer to a struct with kong's tags
	Options []kong.Option
}

// exited carries kong's wish to end the process back to Parse.
type exited int

// Parse reads args into the command's grammar. It returns ErrHelped after
// --help, and what it finds wrong as a usage error with a hint.
func Parse(s Streams, c Command, args []string) (parsed *kong.Context, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exited:
			parsed, err = nil, ErrHelped
		default:
			panic(r)
		}
	}()
	options := append([]kong.Option{
		kong.Name(c.Name), kong.Description(c.Summary), kong.Writers(s.Out, s.Err),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
	}, c.Options...)
	parser, err := kong.New(c.Grammar, options...)
	if err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	parsed, err = parser.Parse(args)
	if err != nil {
		return nil, Hint(Usage(err), "see: "+helpCommand(c.Name, err))
	}
	return parsed, nil
}

// helpCommand names the command whose help describes what was called wrongly.
func helpCommand(name string, err error) string {
	var pe *kong.ParseError
	if errors.As(err, &pe) && pe.Context != nil {
		if node := pe.Context.Selected(); node != nil {
			return node.FullPath() + " --help"
		}
	}
	return name + " --help"
}
