package hookenv

import (
	"context"
	"io/fs"
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
}

// Runner runs a tool whose options are parsed. Its error is worded for the caller.
type Runner func(ctx context.Context, inv *Invocation) error

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
		err := run(ctx, inv)
		if err == nil {
			inv.write = file
		}
		return err
	}
}

func (t Tool) parse(argv []string) (*FlagSet, Runner, error) {
	flags, run := t.declareFlags()
	err := flags.parse(argv)
	return flags, run, err
}

// ParseArgs returns what argv, the tool's name left out, holds beside options.
func (t Tool) ParseArgs(argv []string) ([]string, error) {
	flags, _, err := t.parse(argv)
	return flags.args, err
}

// WithoutOptions returns the Prepare of a tool that declares no option.
func WithoutOptions(run Runner) func(*FlagSet) Runner {
	return func(*FlagSet) Runner { return run }
}

// WithOutput returns the Prepare of a tool whose only option is --format.
func WithOutput(run func(context.Context, *Invocation, *FormatOption) error) func(*FlagSet) Runner {
	return func(f *FlagSet) Runner {
		o := &FormatOption{}
		o.AddFlag(f)
		return func(ctx context.Context, inv *Invocation) error { return run(ctx, inv, o) }
	}
}
