// Package childenv returns the environment variables for the children of this process. Some variables are
// settings of a single process, such as the address of its metrics. The package passes such a variable only
// to the children that need it.
//
// The package is not for hooks: agent/hookexec lists their variables. It is also not for a process that
// replaces itself with a new binary. That process keeps its variables, since it remains the same process for
// the service manager.
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

// settings returns the variables that are settings of this program, each with the kinds of children that get
// it. All children get all other variables, such as PATH and proxies, except those of service managers and hooks.
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

// belongsToManager reports whether a service manager sets the variable for one process, as systemd.exec(5) and
// sd_notify(3) describe. The process's children must not use such a variable.
func belongsToManager(name string) bool {
	return slices.Contains([]string{
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "MAINPID", "MANAGERPID", "MANAGERPIDFDID", "SYSTEMD_EXEC_PID",
		"LISTEN_FDS", "LISTEN_PID", "LISTEN_PIDFDID", "LISTEN_FDNAMES", "FDSTORE", "INVOCATION_ID", "JOURNAL_STREAM",
		"CREDENTIALS_DIRECTORY", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE",
		"RUNTIME_DIRECTORY", "STATE_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY", "CONFIGURATION_DIRECTORY",
	}, name)
}

// belongsToHook reports whether the variable belongs to a hook, or names the environment that an operator's
// shell has chosen. No child gets such a variable, since it would work on that environment.
func belongsToHook(name string) bool {
	return strings.HasPrefix(name, "JUJU_") || name == "CHARM_DIR"
}

// New returns the variables of environ that a child of this kind gets, in the same order. environ contains the
// variables of this process, each as NAME=VALUE. New leaves out the settings that are not for this kind, and
// the variables of service managers and hooks.
func New(environ []string, child Child) []string {
	childrenBySetting := settings()

	var env []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if belongsToManager(name) || belongsToHook(name) {
			continue
		}
		children, isSetting := childrenBySetting[name]
		if isSetting && !slices.Contains(children, child) {
			continue
		}

		env = append(env, pair)
	}

	return env
}

// IsKnown reports whether the variable is a setting of this program or belongs to a hook, so that New decides
// which children get it.
func IsKnown(name string) bool {
	_, isSetting := settings()[name]
	return isSetting || belongsToHook(name)
}
