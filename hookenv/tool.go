package hookenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Tool describes one hook tool.
type Tool struct {
	Name    string
	Manuals fs.FS // contains help/NAME.txt, the text of --help without the options

	// Prepare declares the options, and returns the function that runs after they are parsed.
	Prepare          func(f *FlagSet) Runner
	WorksWithoutHook bool

	// Check checks the arguments before the Runner runs. It can be nil.
	Check func(inv *Invocation) error

	// CheckFirst checks the first argument, if there is one, after Check and before the Runner runs. It can be
	// nil.
	CheckFirst func(word string) error
}

// Runner runs a tool whose options are parsed. Its error is shown to the caller.
type Runner func(ctx context.Context, inv *Invocation) error

// declareFlags declares the tool's options and the option -o, which all tools have. The Runner that it returns
// checks the arguments before it runs the tool.
func (t Tool) declareFlags() (*FlagSet, Runner) {
	f := newFlagSet()
	run := t.Prepare(f)
	var file string
	f.AddString(&file, "write to FILE, created or replaced, instead of stdout", "FILE", "o", "output")

	return f, func(ctx context.Context, inv *Invocation) error {
		if t.Check != nil {
			if err := t.Check(inv); err != nil {
				return err
			}
		}
		if t.CheckFirst != nil && len(inv.Args) > 0 {
			if err := t.CheckFirst(inv.Args[0]); err != nil {
				return err
			}
		}

		err := run(ctx, inv)
		if err != nil {
			return err
		}

		inv.outputPath = file // only now, so that a failed call does not change the file
		return nil
	}
}

// parse parses argv, which does not contain the tool's name. It returns the parsed options, and the Runner that runs
// the tool with them.
func (t Tool) parse(argv []string) (*FlagSet, Runner, error) {
	flags, run := t.declareFlags()
	err := flags.parse(argv)
	return flags, run, err
}

// CheckWords checks a call without running the tool, and returns the arguments of the call that are not options.
// It returns an error if the tool would refuse the call because of its options or its first argument. A call for
// help is valid. If parsing ends early, at the help option or at an error that an unknown word can explain, CheckWords
// returns only the arguments that come before.
//
// An empty word in argv stands for a word that the caller does not know yet. For a call with such a word, CheckWords
// returns an error only for an option that the tool does not have, or for a first argument that is known and invalid.
func (t Tool) CheckWords(argv []string) (args []string, _ error) {
	flags, _, err := t.parse(argv)
	if err == nil {
		return flags.args, t.checkFirst(flags.args)
	}

	// The unknown word may be the value or argument that is missing or invalid here.
	hasUnknownWord := slices.Contains(argv, "")
	mayBeValid := hasUnknownWord && !strings.HasPrefix(err.Error(), unknownOption)
	if errors.Is(err, errHelp) || mayBeValid {
		return flags.args, nil
	}

	return nil, fmt.Errorf("%s: %w", t.Name, err)
}

// checkFirst calls CheckFirst, if the tool has it, with the first argument. It accepts a missing argument, and an empty
// one, which stands for a word that is not known yet.
func (t Tool) checkFirst(args []string) error {
	if t.CheckFirst == nil || len(args) == 0 || args[0] == "" {
		return nil
	}
	if err := t.CheckFirst(args[0]); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return nil
}

// WithoutOptions returns the Prepare function of a tool without options.
func WithoutOptions(run Runner) func(*FlagSet) Runner {
	return func(*FlagSet) Runner { return run }
}

// WithOutput returns the Prepare function of a tool whose only option is --format.
func WithOutput(run Runner) func(*FlagSet) Runner {
	return func(f *FlagSet) Runner {
		f.AddFormat()
		return run
	}
}

// The exit codes of hook tools. charm-helpers interprets exitUsage of relation-get as "no value", so the code of an
// error must never change.
const (
	exitFailure = 1 // the tool or the connection to the agent has failed
	exitUsage   = 2 // the usage or an argument is wrong
)

// errHelp is returned by parsing if the caller requested the tool's help.
var errHelp = errors.New("internal error: help was printed as an error")

// usageError is an error in the usage or arguments of a tool.
type usageError string

func (e usageError) Error() string { return string(e) }

// UsageErrorf returns an error about wrong usage or arguments, for which a tool exits with 2.
func UsageErrorf(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// IsUsageError reports whether the error comes from UsageErrorf, or wraps such an error.
func IsUsageError(err error) bool { return errors.As(err, new(usageError)) }

// exitCode returns the exit code of a call that has failed with err.
func exitCode(err error) int {
	if IsUsageError(err) {
		return exitUsage
	}
	return exitFailure
}

// ErrorResult returns the result of a call that has failed before any tool ran.
func ErrorResult(err error) Result {
	return Result{Exit: exitCode(err), Stderr: []byte("ERROR " + err.Error() + "\n")}
}

// Help returns the text that the tool prints for --help. It panics if Manuals lacks the tool's text.
func (t Tool) Help() string {
	text, examples, _ := strings.Cut(t.manual(), "\nExamples:\n")
	var b strings.Builder
	b.WriteString(text + "\nOptions:\n")
	// The help needs only the flags, not the function that runs the tool.
	flags, _ := t.declareFlags()
	for _, o := range flags.options {
		if o.help != "" {
			fmt.Fprintf(&b, "  %s\n        %s\n", formatOption(o), o.help)
		}
	}

	b.WriteString("  -h, --help\n        print this and exit\n\nExamples:\n" + examples)
	return b.String()
}

// manual returns the tool's text from Manuals. It panics if the text is missing.
func (t Tool) manual() string {
	text, err := fs.ReadFile(t.Manuals, "help/"+t.Name+".txt")
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return string(text)
}

// Summary returns a phrase that describes the tool, such as "print a secret". The phrase is the first sentence after
// the usage line in the tool's manual.
func (t Tool) Summary() string {
	_, description, _ := strings.Cut(t.manual(), "\n\n")
	sentence, _, _ := strings.Cut(description, ".\n")
	return strings.ToLower(sentence[:1]) + sentence[1:]
}

// formatOption returns an option as the help shows it, such as "-r, --relation VALUE".
func formatOption(o option) string {
	var names []string
	for _, name := range o.names {
		names = append(names, withDashes(name))
	}
	return strings.TrimSpace(strings.Join(names, ", ") + " " + o.arg)
}
