package hookenv

import "context"

// Tool describes one hook tool.
type Tool struct {
	Name     string
	Summary  string   // one line
	Usage    string   // its synopsis without its name
	Notes    string   // what the options' own lines do not say; may be empty
	Examples []string // at least one, as typed in a hook

	// prepare declares the options and returns what runs after they are parsed.
	prepare          func(f *flagSet) runner
	worksWithoutHook bool
}

type runner func(ctx context.Context, inv *invocation) error

func (t Tool) declareFlags() (*flagSet, runner) {
	f := newFlagSet()
	run := t.prepare(f)
	var file string
	f.addString(&file, "write to FILE, created or replaced, instead of stdout", "FILE", "o", "output")
	return f, func(ctx context.Context, inv *invocation) error {
		err := run(ctx, inv)
		if err == nil {
			inv.write = file
		}
		return err
	}
}

func (t Tool) parse(argv []string) (*flagSet, runner, error) {
	flags, run := t.declareFlags()
	err := flags.parse(argv)
	return flags, run, err
}

// ParseArgs returns what argv, the tool's name left out, holds beside options.
func (t Tool) ParseArgs(argv []string) ([]string, error) {
	flags, _, err := t.parse(argv)
	return flags.args, err
}

func noOptions(run runner) func(*flagSet) runner {
	return func(*flagSet) runner { return run }
}

func printer(run func(context.Context, *invocation, *output) error) func(*flagSet) runner {
	return func(f *flagSet) runner {
		o := &output{}
		o.addFlag(f)
		return func(ctx context.Context, inv *invocation) error { return run(ctx, inv, o) }
	}
}
