package provider

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"bijou/state/osutil"
)

// GatewayFolder is the subdirectory of an environment's directory with the sockets through which machines
// reach the state. Each machine has a socket in a separate directory, which only that machine can see.
const GatewayFolder = "gateway"

// ConfinedSetting is a setting of providers. If it is true, machines on this host can reach the state only
// through the sockets in GatewayFolder.
const ConfinedSetting = "confined"

// makeGatewayFolders creates dir, the directory of a machine's gateway, and its subdirectories. In the machine,
// other directories are mounted over these subdirectories.
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

// MakeGatewayDir creates the directory that a confined machine gets in place of the environment's directory.
// Its environment.yaml has only the fields that an agent needs. From that directory, the machine's own socket
// is the only way to the state and its secrets. If the directory exists, MakeGatewayDir updates it from the
// environment's record.
func MakeGatewayDir(environmentDir, machine string) error {
	dir := GatewayDir(environmentDir, machine)
	if err := makeGatewayFolders(dir, machine); err != nil {
		return fmt.Errorf("cannot create the directory of machine %s's gateway: %w", machine, err)
	}

	record := struct {
		Name     string `yaml:"name"`
		UUID     string `yaml:"uuid"`
		State    string `yaml:"state"`
		Provider string `yaml:"provider"`
		Tools    string `yaml:"tools"`
		Phase    string `yaml:"phase,omitempty"`
	}{}
	if err := (Environment{Dir: environmentDir}).ReadRecord(&record); err != nil {
		return err
	}
	record.State = GatewayURL(environmentDir, machine)

	data, err := yaml.Marshal(record)
	if err != nil {
		return fmt.Errorf("cannot write the record of machine %s's gateway: %w", machine, err)
	}
	path := filepath.Join(dir, "environment.yaml")
	// The record has usually not changed since the last call.
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, data) {
		return nil
	}
	return osutil.WriteFile(path, data, 0o600)
}

// makePassable creates a directory that other users' programs can traverse, regardless of the umask.
func makePassable(dir string) error {
	if err := osutil.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	return os.Chmod(dir, 0o711)
}

// IsConfined reports whether ConfinedSetting is true in the provider's settings.
func IsConfined(config map[string]string) bool { return config[ConfinedSetting] == "true" }

// GatewayDir returns the directory with a machine's socket.
func GatewayDir(environment, machine string) string {
	return filepath.Join(environment, GatewayFolder, machine)
}

// GatewaySocket returns the path of a machine's socket. The path is the same on this host and in the machine.
func GatewaySocket(environment, machine string) string {
	return filepath.Join(GatewayDir(environment, machine), "socket")
}

// GatewayURL returns the URL of the state at a machine's socket.
func GatewayURL(environment, machine string) string {
	return "bijou+unix://" + GatewaySocket(environment, machine)
}
