// Package childenv makes the environment of a process that this one starts. A variable that sets
// something of one process, like the address of its metrics, reaches only the children that are
// meant to have it.
//
// Hooks are not its affair: agent/hookexec lists all that a hook gets. Nor is a process that goes on
// as another binary: it keeps its own environment, and stays the same process to the service manager.
// It imports nothing of bijou.
package childenv

import (
	"slices"
	"strings"
)

// Child is the kind of process that is started.
type Child int

// The kinds of children.
const (
	Machine    Child = iota // the agent of another machine of this host, which the provider starts
	Background              // the background process that an operator's command starts
	Provider                // the process of an environment's provider
	Program                 // a program of this host: systemctl, apt-get, a component's command
	Tour                    // a command that bijou quickstart or neco demo calls
)

// settings returns all variables that this program reads as a setting of its own, each with the
// children that get it. All other variables are the host's, like PATH and proxies, and all get them.
func settings() map[string][]Child {
	return map[string][]Child{
		"BIJOU_CHARMHUB_URL": nil,                                   // agents never ask the store of charms
		"BIJOU_DEBUG":        {Background, Provider, Machine, Tour}, // the whole environment's processes are looked into
		"BIJOU_FAULT":        {Background},                          // tests kill one process by it
		"BIJOU_HOME":         {Background, Provider, Machine},       // where this user's environments are, like HOME
		"BIJOU_METRICS":      {Background},                          // one process can listen at an address
		"BIJOU_PLUGIN_PATH":  {Background, Provider, Machine, Tour}, // a search path, like PATH
		"BIJOU_PROVIDER":     nil,                                   // of the plugins' handshake, which sets it for its own
		"BIJOU_STATE":        nil,                                   // the environment's record says it; a URL may hold a password
		"NECO_STATE":         {Program},                             // a component's command may call neco
	}
}

// isManagers reports whether a service manager sets the variable for one process (systemd.exec(5),
// sd_notify(3)): its children must not speak for it.
func isManagers(name string) bool {
	return slices.Contains([]string{
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "MAINPID", "MANAGERPID", "MANAGERPIDFDID", "SYSTEMD_EXEC_PID",
		"LISTEN_FDS", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDNAMES", "FDSTORE", "INVOCATION_ID", "JOURNAL_STREAM",
		"CREDENTIALS_DIRECTORY", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE",
		"RUNTIME_DIRECTORY", "STATE_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY",
	}, name)
}

// isHooks reports whether the variable is a hook's, or says which environment an operator's shell has
// chosen. A process with a hook's variables would end with that hook's environment.
func isHooks(name string) bool {
	return strings.HasPrefix(name, "JUJU_") || name == "CHARM_DIR"
}

// New returns the variables of environ that a child of that kind gets, in the same order. environ is the
// environment of this process.
func New(environ []string, child Child) []string {
	known := settings()

	var env []string
	for _, word := range environ {
		name, _, _ := strings.Cut(word, "=")
		getters, isSetting := known[name]
		switch {
		case isManagers(name):
			continue
		case isHooks(name):
			continue
		case isSetting && !slices.Contains(getters, child):
			continue
		}
		env = append(env, word)
	}

	return env
}

// IsKnown reports whether it is determined which children get the variable, a setting of this program's.
func IsKnown(name string) bool {
	_, isSetting := settings()[name]
	return isSetting || isHooks(name)
}
