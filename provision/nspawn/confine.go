package nspawn

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"bijou/provision/provider"
	"bijou/state/osutil"
)

func checkConfined(config map[string]string) error {
	if value := config[provider.ConfinedSetting]; !slices.Contains([]string{"", "true", "false"}, value) {
		return fmt.Errorf("%s.%s is %q: want true or false", Name, provider.ConfinedSetting, value)
	}
	return nil
}

// confine prepares a container that has the machine's gateway instead of the state's folders.
func (l *launch) confine(r environmentRecord, stateFolders []string) error {
	env := l.provider.env.Dir
	if !strings.HasPrefix(r.State, "sqlite:") {
		return fmt.Errorf("%s.%s is for a state in a file of this host, which this environment's is not",
			Name, provider.ConfinedSetting)
	}
	if slices.Contains(stateFolders, env) {
		return errors.New("the state's file is in the environment's folder itself, which the container sees: let it have a folder of its own")
	}

	for _, folder := range stateFolders {
		if strings.HasPrefix(folder, env+"/") {
			l.hiddenFolders = append(l.hiddenFolders, folder)
		}
	}
	l.hiddenFolders = append(l.hiddenFolders, filepath.Join(env, provider.GatewayFolder))
	l.gateway = provider.GatewayDir(env, l.spec.Machine)
	l.state = provider.GatewayURL(env, l.spec.Machine)
	return osutil.MkdirAll(l.gateway, 0o700)
}

// gatewayArgs returns the mounts that hide the host's files from the container and show it its own gateway.
// The container cannot replace anything in the gateway's directory, since a process of the host listens
// there.
func (l launch) gatewayArgs() (args []string) {
	for _, folder := range l.hiddenFolders {
		args = append(args, "--tmpfs="+escapeMount(folder)+":mode=0700,size=4k")
	}
	if l.gateway != "" {
		args = append(args, mountOption("--bind-ro=", l.gateway, l.gateway))
	}
	return args
}
