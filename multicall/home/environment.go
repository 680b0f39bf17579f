package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gopkg.in/yaml.v3"

	"bijou/state/durable"
	"bijou/state/secretkeys"
)

const recordFile = "environment.yaml"

// Record is the content of environment.yaml: what must be known to reach the
// environment at all. Everything else is in its state.
type Record struct {
	Name     string `yaml:"name"`
	UUID     string `yaml:"uuid"`
	State    string `yaml:"state"`    // URL of the store; in the file it names what is in the folder from there
	Provider string `yaml:"provider"` // who makes machines
	Tools    string `yaml:"tools"`    // VERSION-SHA8, the folder below tools/
	Phase    string `yaml:"phase,omitempty"`
}

// Removing is the phase of an environment whose units are gone, and whose processes, store
// and files are being removed: whoever finds it continues with that.
const Removing = "removing"

// Environment is one environment's folder and record.
type Environment struct {
	Dir string // absolute
	Record
}

// Environment reads the named environment; ErrNoEnvironment if it is not there. A folder
// that was given another name is refused.
func (h Home) Environment(name string) (Environment, error) {
	if err := CheckName(name); err != nil {
		return Environment{}, err
	}
	e, err := Load(h.Path(name))
	if err == nil && e.Name != name {
		err = fmt.Errorf("cannot use %q as environment %q: it is that of environment %q, by which name its folder has to go", e.Dir, name, e.Name)
	}
	return e, err
}

// Load reads the environment of that folder; ErrNoEnvironment if there is none.
func Load(dir string) (Environment, error) {
	record, err := readRecord(dir)
	if err != nil {
		return Environment{}, err
	}
	e := Environment{Dir: dir, Record: record}
	if e.State, err = e.absoluteURL(e.State); err != nil {
		return Environment{}, err
	}
	return e, nil
}

func readRecord(dir string) (r Record, err error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%w %q in %s", ErrNoEnvironment, filepath.Base(dir), filepath.Dir(dir))
	}
	if err != nil {
		return r, fmt.Errorf("cannot read the environment: %w", err)
	}
	if err := yaml.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("cannot read %q: %w", filepath.Join(dir, recordFile), err)
	}
	return r, nil
}

// Save writes environment.yaml, which makes the environment exist. Once Save has returned
// it outlasts a loss of power.
func (e Environment) Save() error {
	record := e.Record
	var err error
	if record.State, err = e.relativeURL(e.State); err != nil {
		return err
	}
	data, err := yaml.Marshal(record)
	if err != nil {
		return fmt.Errorf("cannot write the environment: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(e.Dir, recordFile), data, 0o600); err != nil {
		return fmt.Errorf("cannot write the environment: %w", err)
	}
	return nil
}

// StateFile is where the store lies when --state was not given.
func (e Environment) StateFile() string { return filepath.Join(e.Dir, "state", "state.db") }

// ToolsDir is the folder of the binary and links that the environment runs.
func (e Environment) ToolsDir() string { return filepath.Join(e.Dir, "tools", e.Tools) }

// MachineDir is a local machine's folder.
func (e Environment) MachineDir(id string) string { return filepath.Join(e.Dir, "machines", id) }

// MachineDirs returns the folders of the local machines that there are, machine 0's first,
// whether it exists or not.
func (e Environment) MachineDirs() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(e.Dir, "machines"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list machines: %w", err)
	}
	dirs := []string{e.MachineDir("0")}
	for _, m := range entries {
		if m.Name() != "0" {
			dirs = append(dirs, e.MachineDir(m.Name()))
		}
	}
	return dirs, nil
}

// SecretKeys is the file of the keys that seal secrets; empty where there is no folder.
func (e Environment) SecretKeys() secretkeys.File {
	if e.Dir == "" {
		return ""
	}
	return secretkeys.In(e.Dir)
}

// LogFile is the log of a local machine's agent.
func (e Environment) LogFile(id string) string { return filepath.Join(e.MachineDir(id), "agent.log") }
