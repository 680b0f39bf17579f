package nspawn

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"bijou/provision/provider"
)

// checkConfined returns an error if the setting that confines containers is neither a boolean nor empty.
func checkConfined(config map[string]string) error {
	if value := config[provider.ConfinedSetting]; !slices.Contains([]string{"", "true", "false"}, value) {
		return fmt.Errorf("%s.%s is %q: want true or false", Name, provider.ConfinedSetting, value)
	}
	return nil
}

// confine prepares a container whose agent reaches the state only through the machine's gateway. It sets
// l.gateway and l.state, and creates the gateway's directory. It returns an error if the state is not in a
// SQLite file on this host.
func (l *launch) confine(r environmentRecord) error {
	env := l.provider.env.Dir
	if !strings.HasPrefix(r.State, "sqlite:") {
		return fmt.Errorf("%s.%s needs a state in a file on this host, but this model's state is elsewhere",
			Name, provider.ConfinedSetting)
	}

	l.gateway = provider.GatewayDir(env, l.spec.Machine)
	l.state = provider.GatewayURL(env, l.spec.Machine)
	return provider.MakeGatewayDir(env, l.spec.Machine)
}

// environmentArgs returns the options that mount directories at the environment's path in the container. A
// container with a gateway gets the gateway's directory, which does not contain the state. Other containers
// get the environment's directory. Of the host's directories that these options mount, only machines/ is
// writable, and belongs to this machine alone.
func (l launch) environmentArgs() (args []string) {
	env := l.provider.env.Dir
	machines := mountOption("--bind=", filepath.Join(l.dir(), "machines"), filepath.Join(env, "machines"))
	if l.gateway == "" {
		return []string{
			mountOption("--bind-ro=", env, env), machines,
			// An empty file system hides the files of other containers.
			"--tmpfs=" + escapeMount(l.provider.dir) + ":mode=0700,size=4k",
		}
	}

	// The gateway's directory is mounted read-only, since a process on the host listens there.
	return []string{
		mountOption("--bind-ro=", l.gateway, env), machines,
		mountOption("--bind-ro=", filepath.Join(env, "tools"), filepath.Join(env, "tools")),
		// The path of the gateway's socket is the same on this host and in the container.
		mountOption("--bind-ro=", l.gateway, l.gateway),
	}
}
