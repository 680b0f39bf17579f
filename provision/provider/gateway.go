package provider

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"bijou/state/osutil"
)

// GatewayFolder is where an environment's folder has the sockets by which machines reach the state
// without having it: one a machine, each in a folder of its own, which that machine alone is given.
const GatewayFolder = "gateway"

// ConfinedSetting is the provider's setting that has machines of this host reach the state by such a
// socket only.
const ConfinedSetting = "confined"

// makeGatewayFolders makes the folder of a machine's gateway, and those in it that others are mounted over.
func makeGatewayFolders(dir, machine string) error {
	if err := osutil.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}

	for _, folder := range []string{"", "machines", "tools", GatewayFolder, filepath.Join(GatewayFolder, machine)} {
		if err := makePassable(filepath.Join(dir, folder)); err != nil {
			return err
		}
	}
	return nil
}

// MakeGatewayDir makes the directory that a confined machine has in place of its environment's. Its environment.yaml has
// only the members that an agent needs. The machine's own socket is the only way from there to the state and its secrets.
// A repeated call brings the directory up to date with the environment's record.
func MakeGatewayDir(environment, machine string) error {
	dir := GatewayDir(environment, machine)
	if err := makeGatewayFolders(dir, machine); err != nil {
		return fmt.Errorf("cannot make the folder of machine %s's gateway: %w", machine, err)
	}

	record := struct {
		Name     string `yaml:"name"`
		UUID     string `yaml:"uuid"`
		State    string `yaml:"state"`
		Provider string `yaml:"provider"`
		Tools    string `yaml:"tools"`
		Phase    string `yaml:"phase,omitempty"`
	}{}
	if err := (Environment{Dir: environment}).ReadRecord(&record); err != nil {
		return err
	}
	record.State = GatewayURL(environment, machine)

	data, err := yaml.Marshal(record)
	if err != nil {
		return fmt.Errorf("cannot write the record of machine %s's gateway: %w", machine, err)
	}
	path := filepath.Join(dir, "environment.yaml")
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, data) {
		return nil
	}
	return osutil.WriteFile(path, data, 0o600)
}

// makePassable makes a directory that programs of other users can pass through, whatever the umask.
func makePassable(dir string) error {
	if err := osutil.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	return os.Chmod(dir, 0o711)
}

// IsConfined reports whether a provider's settings say so.
func IsConfined(config map[string]string) bool { return config[ConfinedSetting] == "true" }

// GatewayDir returns the directory of a machine's socket.
func GatewayDir(environment, machine string) string {
	return filepath.Join(environment, GatewayFolder, machine)
}

// GatewaySocket returns the path of a machine's socket, which is the same on this host and in the machine.
func GatewaySocket(environment, machine string) string {
	return filepath.Join(GatewayDir(environment, machine), "socket")
}

// GatewayURL returns the URL of the state at a machine's socket.
func GatewayURL(environment, machine string) string {
	return "bijou+unix://" + GatewaySocket(environment, machine)
}
