package multicall

import (
	"slices"
	"strings"
)

// Applet is one name that this binary answers to.
type Applet struct {
	Name    string
	Summary string // one line for `bijou help`

	run func(call) int
}

// Applets lists every applet, by name. Links, `bijou --list` and the test
// binaries are made from it.
func Applets() []Applet {
	applets := slices.Concat(roleApplets(), providerApplets(), hookToolApplets())
	slices.SortFunc(applets, func(a, b Applet) int { return strings.Compare(a.Name, b.Name) })
	return applets
}

func roleApplets() []Applet {
	return []Applet{
		{"bijou", "lists, explains and installs the applets; quickstart", runBijou},
		{"juju", "the operator's commands: deploy, relate, look, take down", runJuju},
		{"machine-agent", "runs the units of one machine (and, on machine 0, the provisioner)", runMachineAgent},
		{"unit-agent", "runs one unit alone", runUnitAgent},
		{"provisioner", "makes sure that every machine has an instance", runProvisioner},
		{"neco", "keeps boot servers up to date: the operator's commands", runNeco},
		{"neco-updater", "finds releases, and leads the boot servers through updates", runNecoUpdater},
		{"neco-worker", "does one boot server's part in updates", runNecoWorker},
		{"jujud", "answers `jujud version`, which some charms ask", runJujud},
	}
}

func findApplet(name string) (Applet, bool) {
	applets := Applets()
	i := slices.IndexFunc(applets, func(a Applet) bool { return a.Name == name })
	if i < 0 {
		return Applet{}, false
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
