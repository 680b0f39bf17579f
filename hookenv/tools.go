package hookenv

import (
	"cmp"
	"context"
	"slices"
)

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

// Tools returns every hook tool, sorted by name. Symlinks are made from it.
func Tools() []Tool {
	tools := []Tool{
		actionFail(), actionGet(), actionLog(), actionSet(), resourceGet(),
		applicationVersionSet(), closePort(), configGet(), goalState(), isLeader(), jujuLog("juju-log"), jujuLog("juju-logger"),
		jujuReboot(), leaderGet(), leaderSet(), networkGet(), openPort(), openedPorts(), relationGet(), relationIDs(),
		relationList(), relationModelGet(), relationSet(), stateDelete(), stateGet(), stateSet(), statusGet(), statusSet(), storageAdd(),
		storageGet(), storageList(), unitGet(), unitRelations(),
	}
	for name, summary := range unsupportedSummaries() {
		tools = append(tools, unsupportedTool(name, summary))
	}
	slices.SortFunc(tools, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return tools
}

// Supported reports whether a tool does its work in this version.
func Supported(name string) bool {
	_, listed := unsupportedSummaries()[name]
	_, exists := findTool(name)
	return exists && !listed
}

func findTool(name string) (Tool, bool) {
	for _, tool := range Tools() {
		if tool.Name == name {
			return tool, true
		}
	}
	return Tool{}, false
}
