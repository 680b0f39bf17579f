// Package childenv returns the environment variables for the children of this process. A variable that is a
// setting of a single process, such as the address of its metrics, is passed only to the children that need
// it.
//
// It is not for hooks, whose variables agent/hookexec lists. It is also not for a process that replaces
// itself with a new binary: that process keeps its variables, since it remains the same process for the
// service manager.
package childenv

import (
	"slices"
	"strings"
)

// Child is the kind of process that is started.
type Child int

// The kinds of children.
const (
	Machine    Child = iota // the agent of another machine on this host, which the provider starts
	Background              // the background process that an operator's command starts
	Provider                // the process of an environment's provider
	Program                 // a program on this host: systemctl, apt-get, a component's command
	Tour                    // a command that bijou quickstart or neco demo calls
)

// settings returns the variables that are settings of this program, with the children that get them. All
// other variables, such as PATH and proxies, belong to the host, and all children receive them.
func settings() map[string][]Child {
	return map[string][]Child{
		"BIJOU_CHARMHUB_URL": nil,                                   // agents never use Charmhub
		"BIJOU_DEBUG":        {Background, Provider, Machine, Tour}, // applies to all processes of the environment
		"BIJOU_FAULT":        {Background},                          // tests use it to kill a single process
		"BIJOU_HOME":         {Background, Provider, Machine},       // directory of this user's environments
		"BIJOU_METRICS":      {Background},                          // only one process can listen on an address
		"BIJOU_PLUGIN_PATH":  {Background, Provider, Machine, Tour}, // a search path, like PATH
		"BIJOU_PROVIDER":     nil,                                   // the plugins' handshake sets it
		"BIJOU_STATE":        nil,                                   // children read the environment's record; the URL can contain a password
		"NECO_STATE":         {Program},                             // a component's command may call neco
	}
}

// isManagers reports whether a service manager sets the variable for one process, as systemd.exec(5) and
// sd_notify(3) describe. The process's children must not use such a variable.
func isManagers(name string) bool {
	return slices.Contains([]string{
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "MAINPID", "MANAGERPID", "MANAGERPIDFDID", "SYSTEMD_EXEC_PID",
		"LISTEN_FDS", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDNAMES", "FDSTORE", "INVOCATION_ID", "JOURNAL_STREAM",
		"CREDENTIALS_DIRECTORY", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE",
		"RUNTIME_DIRECTORY", "STATE_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY",
	}, name)
}

// isHooks reports whether the variable belongs to a hook, or names the environment that an operator's shell
// has chosen. A process with such a variable would work on that environment.
func isHooks(name string) bool {
	return strings.HasPrefix(name, "JUJU_") || name == "CHARM_DIR"
}

// New returns the variables of environ that a child of this kind gets, in the same order. environ has the
// variables of this process.
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

// IsKnown reports whether New knows which children get the variable, which is a setting of this program.
func IsKnown(name string) bool {
	_, isSetting := settings()[name]
	return isSetting || isHooks(name)
}
