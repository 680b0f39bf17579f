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
	Manuals fs.FS // has help/NAME.txt, which is all of --help but the options

	// Prepare declares the options and returns what runs after they are parsed.
	Prepare          func(f *FlagSet) Runner
	WorksWithoutHook bool

	// Check refuses a call by its arguments before anything is asked; nil: the runner does.
	Check func(inv *Invocation) error

	// CheckFirst refuses a call by its first argument, if it has one, after Check and before anything is
	// asked; nil: the runner does.
	CheckFirst func(word string) error
}

// Runner runs a tool whose options are parsed. Its error is worded for the caller.
type Runner func(ctx context.Context, inv *Invocation) error

// declareFlags declares the tool's options and the option -o, which all tools have. The Runner checks the
// arguments before it runs the tool.
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

		inv.write = file
		return nil
	}
}

func (t Tool) parse(argv []string) (*FlagSet, Runner, error) {
	flags, run := t.declareFlags()
	err := flags.parse(argv)
	return flags, run, err
}

// CheckWords returns the arguments of a call without the tool's name and options. It returns an error if
// the tool would refuse the call because of its options or its first argument. An empty word in argv stands
// for a word that is not known. Such a call is refused only for an unknown option, or for a first argument
// that is known.
func (t Tool) CheckWords(argv []string) (args []string, _ error) {
	flags, _, err := t.parse(argv)
	if err == nil {
		return flags.args, t.checkFirst(flags.args)
	}

	mayFit := slices.Contains(argv, "") && !strings.HasPrefix(err.Error(), unknownOption)
	if errors.Is(err, errHelp) || mayFit {
		return flags.args, nil
	}

	return nil, fmt.Errorf("%s: %w", t.Name, err)
}

func (t Tool) checkFirst(args []string) error {
	if t.CheckFirst == nil || len(args) == 0 || args[0] == "" {
		return nil
	}
	if err := t.CheckFirst(args[0]); err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return nil
}

// WithoutOptions returns the Prepare of a tool that declares no option.
func WithoutOptions(run Runner) func(*FlagSet) Runner {
	return func(*FlagSet) Runner { return run }
}

// WithOutput returns the Prepare of a tool whose only option is --format.
func WithOutput(run Runner) func(*FlagSet) Runner {
	return func(f *FlagSet) Runner {
		f.AddFormat()
		return run
	}
}

// The exit codes of hook tools. charm-helpers takes exitUsage of relation-get
// for "no value", so no error may change its code.
const (
	exitFailure = 1 // it failed while running, or in transport
	exitUsage   = 2 // wrong usage or arguments
)

// errHelp ends parsing: the caller wants the tool's help.
var errHelp = errors.New("internal error: help was printed as an error")

// usageError is wrong usage: exit code 2.
type usageError string

func (e usageError) Error() string { return string(e) }

// UsageErrorf returns an error for which a tool exits with 2: wrong usage or arguments.
func UsageErrorf(format string, args ...any) error { return usageError(fmt.Sprintf(format, args...)) }

// IsUsageError reports whether UsageErrorf made the error, or an error that it wraps.
func IsUsageError(err error) bool { return errors.As(err, new(usageError)) }

func exitCode(err error) int {
	if IsUsageError(err) {
		return exitUsage
	}
	return exitFailure
}

// ErrorResult returns the result for a caller whose call failed before any tool ran.
func ErrorResult(err error) Result {
	return Result{Exit: exitCode(err), Stderr: []byte("ERROR " + err.Error() + "\n")}
}

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

// Summary returns one line that says what the tool does, as a part of a sentence, as in "print a secret".
func (t Tool) Summary() string {
	_, text, _ := strings.Cut(t.manual(), "\n\n")
	sentence, _, _ := strings.Cut(text, ".\n")
	return strings.ToLower(sentence[:1]) + sentence[1:]
}

// formatOption returns an option in the way it is typed: "-r, --relation VALUE".
func formatOption(o option) string {
	var names []string
	for _, name := range o.names {
		names = append(names, withDashes(name))
	}
	return strings.TrimSpace(strings.Join(names, ", ") + " " + o.arg)
}
