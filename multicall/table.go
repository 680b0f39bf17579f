package multicall

import (
	"slices"
	"strings"

	"bijou/hookenv/client"
	"bijou/hookenv/tools"
	"bijou/multicall/agents"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/juju"
	"bijou/multicall/neco"
	"bijou/multicall/necodaemon"
	"bijou/multicall/providers"
)

// Applets lists every applet, by name. Links, `bijou --list` and the test
// binaries are made from it.
func Applets() []applet.Applet {
	applets := slices.Concat(roleApplets(), providers.Applets(), hookToolApplets())
	slices.SortFunc(applets, func(a, b applet.Applet) int { return strings.Compare(a.Name, b.Name) })
	return applets
}

func roleApplets() []applet.Applet {
	return []applet.Applet{
		{Name: "bijou", Summary: "lists, explains and installs the applets; quickstart", Run: runBijou},
		{Name: "juju", Summary: "the operator's commands: deploy, relate, look, take down", Run: runJuju},
		{Name: "machine-agent", Summary: "runs the units of one machine (and, on machine 0, the provisioner)", Run: agents.RunMachineAgent},
		{Name: "unit-agent", Summary: "runs one unit alone", Run: agents.RunUnitAgent},
		{Name: "provisioner", Summary: "makes sure that every machine has an instance", Run: agents.RunProvisioner},
		{Name: "neco", Summary: "keeps boot servers up to date: the operator's commands", Run: runNeco},
		{Name: "neco-updater", Summary: "finds releases, and leads the boot servers through updates", Run: necodaemon.RunUpdater},
		{Name: "neco-worker", Summary: "does one boot server's part in updates", Run: necodaemon.RunWorker},
		{Name: "jujud", Summary: "answers `jujud version`, which some charms ask", Run: runJujud},
	}
}

// Commands lists the command lines that kong parses: all but those of hook tools and providers.
func Commands() []console.Command {
	return slices.Concat([]console.Command{bijouCommand(), juju.Command(), neco.Command(), jujudCommand()}, agents.Commands(), necodaemon.Commands())
}

func findApplet(name string) (applet.Applet, bool) {
	applets := Applets()
	i := slices.IndexFunc(applets, func(a applet.Applet) bool { return a.Name == name })
	if i < 0 {
		return applet.Applet{}, false
	}
	return applets[i], true
}

func appletNames() []string {
	var all []string
	for _, a := range Applets() {
		all = append(all, a.Name)
	}
	return all
}

// hookToolApplets do not run inside a hook: there hookenv/client has answered and ended
// the process before main.
func hookToolApplets() []applet.Applet {
	var applets []applet.Applet
	for _, tool := range tools.All() {
		applets = append(applets, applet.Applet{Name: tool.Name, Run: runHookTool})
	}
	return applets
}

func hookToolNames() []string {
	var names []string
	for _, tool := range tools.All() {
		names = append(names, tool.Name)
	}
	return names
}

// runHookTool answers what needs no hook, or speaks to the agent that the arguments name
// (--socket, --client-id).
func runHookTool(c applet.Call) int {
	argv := append([]string{c.Name}, c.Args...)
	if r, done := tools.RunWithoutHook(argv); done {
		c.Streams.Out.Write(r.Stdout)
		c.Streams.Err.Write(r.Stderr)
		return r.Exit
	}
	return client.Run(argv)
}
