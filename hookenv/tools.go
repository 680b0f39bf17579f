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
	prepare func(f *flagSet) runner
	outside bool // it works without a hook too
}

type runner func(ctx context.Context, inv *invocation) error

// declare declares the tool's options, and -o, which all take.
func (t Tool) declare() (*flagSet, runner) {
	f := newFlagSet()
	run := t.prepare(f)
	var file string
	f.string(&file, "write to FILE, created or replaced, instead of stdout", "FILE", "o", "output")
	return f, func(ctx context.Context, inv *invocation) error {
		err := run(ctx, inv)
		if err == nil {
			inv.write = file
		}
		return err
	}
}

// Tools lists every hook tool, sorted by name. Symlinks are made from it.
func Tools() []Tool {
	built := []Tool{
		actionFail(), actionGet(), actionLog(), actionSet(), resourceGet(),
		applicationVersionSet(), closePort(), configGet(), goalState(), isLeader(), jujuLog("juju-log"), jujuLog("juju-logger"),
		jujuReboot(), leaderGet(), leaderSet(), networkGet(), openPort(), openedPorts(), relationGet(), relationIDs(),
		relationList(), relationModelGet(), relationSet(), stateDelete(), stateGet(), stateSet(), statusGet(), statusSet(), storageAdd(),
		storageGet(), storageList(), unitGet(), unitRelations(),
	}
	return sortedByName(append(built, unsupportedTools()...))
}

// Supported says whether a tool does its work in this version.
func Supported(name string) bool {
	_, listed := unsupported()[name]
	_, exists := lookup(name)
	return exists && !listed
}

func lookup(name string) (Tool, bool) {
	for _, tool := range Tools() {
		if tool.Name == name {
			return tool, true
		}
	}
	return Tool{}, false
}
