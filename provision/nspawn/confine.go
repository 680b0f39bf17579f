package nspawn

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"bijou/provision/provider"
)

func checkConfined(config map[string]string) error {
	if value := config[provider.ConfinedSetting]; !slices.Contains([]string{"", "true", "false"}, value) {
		return fmt.Errorf("%s.%s is %q: want true or false", Name, provider.ConfinedSetting, value)
	}
	return nil
}

// confine prepares a container that has the machine's gateway instead of the state's folders.
func (l *launch) confine(r environmentRecord) error {
	env := l.provider.env.Dir
	if !strings.HasPrefix(r.State, "sqlite:") {
		return fmt.Errorf("%s.%s needs a state in a file of this host, and this model's state is elsewhere",
			Name, provider.ConfinedSetting)
	}

	l.gateway = provider.GatewayDir(env, l.spec.Machine)
	l.state = provider.GatewayURL(env, l.spec.Machine)
	return provider.MakeGatewayDir(env, l.spec.Machine)
}

// environmentArgs mount the environment's folder as the container is to see it: as it is at any time, or, if
// the container has a gateway, that of its gateway, which has nothing of the state. Below it is the machine's own folder,
// which its agent writes into.
func (l launch) environmentArgs() (args []string) {
	env := l.provider.env.Dir
	machines := mountOption("--bind=", filepath.Join(l.dir(), "machines"), filepath.Join(env, "machines"))
	if l.gateway == "" {
		return []string{
			mountOption("--bind-ro=", env, env), machines,
			"--tmpfs=" + escapeMount(l.provider.dir) + ":mode=0700,size=4k",
		}
	}

	// It can replace nothing in the gateway's folder: the process that listens there is the host's.
	return []string{
		mountOption("--bind-ro=", l.gateway, env), machines,
		mountOption("--bind-ro=", filepath.Join(env, "tools"), filepath.Join(env, "tools")),
		mountOption("--bind-ro=", l.gateway, l.gateway),
	}
}
