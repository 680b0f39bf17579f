package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"golang.org/x/sys/unix"
)

// ErrHelped is returned if help was requested and printed, so that the caller must do nothing else.
var ErrHelped = errors.New("help was printed")

// Command describes one applet's command line.
type Command struct {
	Name    string
	Summary string // a description with examples; if it is empty, Help has the description
	Grammar any    // a pointer to a struct with kong's tags, for options and words
	// Commands points to a struct that has a command in each field, with kong's tags. It may be nil.
	Commands any
	// Help has the texts of --help in its directory help, for this command (juju.txt) and for the
	// commands below it (deploy.txt, config/set.txt). It may be nil.
	Help fs.FS
	// Inserts are the texts that replace {{NAME}} in Help, by name.
	Inserts map[string]func() string
	// Names returns the names that a value can have, for completion. It may be nil.
	Names func(w Wanted) []string
	// Unneeded are options that the commands accept besides their own.
	Unneeded []Unneeded
}

// HelpText returns the help of a command, by a name such as juju, deploy or config/set. It inserts the texts of
// c.Inserts. It returns "" if the command has no help.
func (c Command) HelpText(name string) string {
	if c.Help == nil {
		return ""
	}
	data, err := fs.ReadFile(c.Help, path.Join("help", name+".txt"))
	if err != nil {
		return ""
	}

	text := strings.TrimSuffix(string(data), "\n")
	for insertName, insert := range c.Inserts {
		if mark := "{{" + insertName + "}}"; strings.Contains(text, mark) {
			text = strings.ReplaceAll(text, mark, strings.TrimSuffix(insert(), "\n"))
		}
	}

	return text
}

// exitPanic carries kong's call to exit back to Parse.
type exitPanic int

// Parse reads args into the command's grammar, and prints notes about unneeded options. It returns ErrHelped after it
// has answered --help or CompleteOption. For wrong arguments it returns a usage error, with a hint unless an argument
// is not UTF-8.
func Parse(s Streams, c Command, args []string) (parsed *kong.Context, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
			// There was no panic.
		case exitPanic:
			// kong exits only after it has printed help.
			parsed = nil
			err = ErrHelped
		default:
			panic(r)
		}
	}()

	if err := checkText(args); err != nil {
		return nil, err
	}
	if len(args) > 0 && args[0] == CompleteOption {
		return nil, c.complete(s.Out, args[1:])
	}

	parser, err := c.newParser(args, kong.Writers(s.Out, s.Err),
		kong.Exit(func(code int) {
			panic(exitPanic(code))
		}), kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}))
	if err != nil {
		return nil, err
	}

	parsed, err = parseWords(parser, args)
	if err != nil {
		return nil, Hint(Usage(unknownCommand(parser, err)), "see: "+helpCommand(c.Name, err))
	}

	noteUnneeded(s.Err, parsed)
	return parsed, nil
}

// newParser returns kong's parser for the command line args. If args call one of c.Commands, the parser knows only that
// command, which makes it faster.
func (c Command) newParser(args []string, options ...kong.Option) (*kong.Kong, error) {
	description := c.Summary
	if description == "" {
		description = c.HelpText(c.Name)
	}
	options = append(options, kong.Name(c.Name), kong.Description(description))
	parser, err := kong.New(c.Grammar, append(options, c.commandOptions(args)...)...)
	if err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}

	c.hideOption(parser, args)
	const noFolder = ""
	c.addHelp(parser.Model.Node, noFolder)
	hasOptions := slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-") })
	// Unneeded options take a third of the time of a parse. Without an option in args, leave them out.
	if !hasOptions {
		return parser, nil
	}

	if err := c.addUnneeded(parser); err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	return parser, nil
}

// dashed returns a field's name in lower case, with a dash in front of each capital after the first letter. kong writes
// such a name in the same way if it has only letters, and no adjacent capitals.
func dashed(field string) string {
	var b strings.Builder
	for i, r := range field {
		isCapital := 'A' <= r && r <= 'Z'
		if i > 0 && isCapital {
			b.WriteByte('-')
		}
		b.WriteRune(r)
	}

	return strings.ToLower(b.String())
}

// commandOptions returns the options that add commands to kong's parser: the command that args call, or all commands if
// args call none. kong examines every flag of every command that it gets, which takes most of the time of a start.
func (c Command) commandOptions(args []string) (commands []kong.Option) {
	if c.Commands == nil {
		return nil
	}

	// List returns the commands in the order of the fields.
	for i, listed := range c.List() {
		field := reflect.TypeOf(c.Commands).Elem().Field(i)
		target := reflect.ValueOf(c.Commands).Elem().Field(i).Addr().Interface()
		const noGroup = ""
		command := kong.DynamicCommand(listed.Name, listed.Help, noGroup, target, string(field.Tag))
		if len(args) > 0 && listed.Answers(args[0]) {
			return []kong.Option{command}
		}
		commands = append(commands, command)
	}

	return commands
}

// hideOption hides one general option from the help of the called command, for which the option has no meaning. The
// command's tag without:"OPTION" names that option. The command still accepts the option.
func (c Command) hideOption(parser *kong.Kong, args []string) {
	if c.Commands == nil || len(args) == 0 {
		return
	}

	i := slices.IndexFunc(c.List(), func(l Listed) bool { return l.Answers(args[0]) })
	if i < 0 {
		return
	}

	hidden := reflect.TypeOf(c.Commands).Elem().Field(i).Tag.Get("without")
	if hidden == "" {
		return
	}
	for _, f := range parser.Model.Flags {
		if f.Name == hidden {
			f.Hidden = true
		}
	}
}

// Listed is one of a command line's commands.
type Listed struct {
	Name    string
	Aliases []string
	Help    string // one line
}

// Answers reports whether the command has that name or alias.
func (l Listed) Answers(name string) bool { return name == l.Name || slices.Contains(l.Aliases, name) }

// List returns the commands in the order of the fields of c.Commands, which must not be nil.
func (c Command) List() (listed []Listed) {
	commands := reflect.TypeOf(c.Commands).Elem()
	for f := range commands.Fields() {
		name := cmp.Or(f.Tag.Get("name"), dashed(f.Name))
		aliases := strings.FieldsFunc(f.Tag.Get("aliases"), func(r rune) bool { return r == ',' })
		listed = append(listed, Listed{Name: name, Aliases: aliases, Help: f.Tag.Get("help")})
	}

	return listed
}

// addHelp sets the help text of each command below n, and of their own commands, if c.Help has one. folder stands for
// n in the names of HelpText, such as config in config/set. It is "" for the applet itself.
func (c Command) addHelp(n *kong.Node, folder string) {
	for _, command := range n.Children {
		name := path.Join(folder, command.Name)
		if text := c.HelpText(name); text != "" {
			command.Detail = text
		}
		c.addHelp(command, name)
	}
}

// OrHelp returns the args that an applet with commands passes to Parse. It replaces empty args with --help, and
// "help COMMAND" with "COMMAND --help".
func OrHelp(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		// The limited capacity makes append copy the words, so that it does not write into the caller's array.
		return append(args[1:len(args):len(args)], "--help")
	}

	return args
}

// checkText returns an error for an argument that is not UTF-8. kong would put replacement characters into such an
// argument, and the command would store a different value.
func checkText(args []string) error {
	for _, a := range args {
		if !utf8.ValidString(a) {
			return Usage(fmt.Errorf("%.60q is not UTF-8", a))
		}
	}
	return nil
}

// unknownCommand returns an error for a first word that is not a command, with similar commands. It replaces kong's
// error, which calls the word an unexpected argument, and suggests no aliases. It returns all other errors unchanged.
func unknownCommand(parser *kong.Kong, err error) error {
	parseErr, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parseErr.Context == nil {
		return err
	}
	hasCommands := len(parser.Model.Children) > 0
	isCommandFound := parseErr.Context.Selected() != nil
	if !hasCommands || isCommandFound {
		return err
	}

	// The text is: unexpected argument WORD[, did you mean "SIMILAR"?]
	text, isUnexpected := strings.CutPrefix(err.Error(), "unexpected argument ")
	if !isUnexpected {
		return err
	}
	word, _, _ := strings.Cut(text, ", did you mean ")

	similar := similarCommands(parser.Model.Children, word)
	switch len(similar) {
	case 0:
		return fmt.Errorf("there is no command %q", word)
	case 1:
		return fmt.Errorf("there is no command %q; did you mean %s?", word, similar[0])
	}
	return fmt.Errorf("there is no command %q; did you mean one of %s?", word, strings.Join(similar, ", "))
}

// similarCommands returns the quoted names of the commands that begin with word, or that word misspells. For each such
// command, it returns the name or, if only an alias is similar to word, the first such alias. It leaves out hidden
// commands.
func similarCommands(commands []*kong.Node, word string) (similar []string) {
	isSimilar := func(name string) bool {
		isBeginning := word != "" && strings.HasPrefix(name, word)
		return isBeginning || isSlip(name, word, editDistance(name, word))
	}

	for _, command := range commands {
		names := append([]string{command.Name}, command.Aliases...)
		i := slices.IndexFunc(names, isSimilar)
		if i >= 0 && !command.Hidden {
			similar = append(similar, strconv.Quote(names[i]))
		}
	}

	return similar
}

// helpCommand returns the command line that shows the help of the command in which the parse failed with err. name is
// the applet's name.
func helpCommand(name string, err error) string {
	parseErr, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parseErr.Context == nil {
		return name + " --help"
	}

	// kong's own path would contain the commands' aliases.
	words := ""
	for node := parseErr.Context.Selected(); node != nil && node.Type == kong.CommandNode; node = node.Parent {
		words = " " + node.Name + words
	}
	return name + words + " --help"
}

// orphanPollInterval is the time between two checks whether the parent process has ended.
const orphanPollInterval = time.Second

// UntilUnread returns a context that is cancelled when the reader of w has closed the pipe, as after `| head -1`,
// or when the parent process has ended. Without such a context, a process that has nothing to print would not
// notice either event. The end of ctx and stop also cancel the context. Nothing else does if w is not a file, or if
// UntilUnread cannot create a pipe. The stop function frees resources, and must be called.
func UntilUnread(ctx context.Context, w io.Writer) (unread context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	f, ok := w.(*os.File)
	if !ok {
		return ctx, cancel
	}

	// stop closes the write end of this pipe, which ends awaitUnread.
	stopRead, stopWrite, err := os.Pipe()
	if err != nil {
		return ctx, cancel // the process notices the closed pipe of w at its next write
	}

	var waiting sync.WaitGroup
	parent := os.Getppid()
	waiting.Go(func() {
		awaitUnread(int(f.Fd()), int(stopRead.Fd()), func() bool { return os.Getppid() != parent })
		cancel()
	})

	return ctx, func() {
		stopWrite.Close()
		waiting.Wait()
		stopRead.Close()
		cancel()
	}
}

// awaitUnread blocks until the other end of output or of stop is closed, isOrphan returns true, or poll(2) fails.
// output is a pipe, a socket or a terminal. Since awaitUnread requests no events, poll(2) reports no other condition.
func awaitUnread(output, stop int, isOrphan func() bool) {
	for !isOrphan() {
		closed, err := unix.Poll([]unix.PollFd{{Fd: int32(output)}, {Fd: int32(stop)}},
			int(orphanPollInterval/time.Millisecond))
		isFailed := err != nil && !errors.Is(err, syscall.EINTR)
		if closed > 0 || isFailed {
			return
		}
	}
}

// IsUnread reports whether an error means that the reader of the output has closed the pipe.
func IsUnread(err error) bool { return errors.Is(err, syscall.EPIPE) }

// parseWords makes kong parse the args. Kong does not continue a list of words after an option, as in
// `run-action UNIT ACTION a=1 --wait b=2`. parseWords moves such options before the list, and parses the args again:
// `run-action UNIT ACTION --wait a=1 b=2`. Each round joins more words to the list, so the loop ends.
func parseWords(parser *kong.Kong, args []string) (*kong.Context, error) {
	for {
		parsed, err := parser.Parse(args)
		if err == nil {
			return parsed, nil
		}
		parseErr, ok := errors.AsType[*kong.ParseError](err)
		if !ok || parseErr.Context == nil {
			return parsed, err
		}

		// These are the elements that kong has parsed before the error.
		elements := parseErr.Context.Path
		listIndex := slices.IndexFunc(elements, func(p *kong.Path) bool {
			return p.Positional != nil && p.Positional.IsCumulative()
		})
		isOptionAfterList := listIndex >= 0 && listIndex < len(elements)-1
		if !isOptionAfterList {
			return parsed, err
		}

		// consumed returns how many args elements[:i+1] have consumed.
		consumed := func(i int) int { return len(args) - len(elements[i].Remainder()) }
		wordsAt := consumed(listIndex - 1) // elements[0] is the program, so listIndex is at least 1
		optionsAt := consumed(listIndex)
		unparsedAt := consumed(len(elements) - 1)

		words := args[wordsAt:optionsAt]
		options := args[optionsAt:unparsedAt]
		args = slices.Concat(args[:wordsAt], options, words, args[unparsedAt:])
	}
}
