package home

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"bijou/state/osutil"
	"bijou/state/secret/keyfile"
)

const recordFile = "environment.yaml"

// Record is the content of environment.yaml. It has the values that are needed to reach the environment's
// state. All other data is in the state.
type Record struct {
	Name     string `yaml:"name"`
	UUID     string `yaml:"uuid"`
	State    string `yaml:"state"`    // the URL of the store; in the file, it has paths relative to the environment's directory
	Provider string `yaml:"provider"` // the name of the provider
	Tools    string `yaml:"tools"`    // VERSION-SHA8, the directory below tools/
	Phase    string `yaml:"phase,omitempty"`

	Unknown map[string]any `yaml:",inline"` // keys of newer versions of bijou, which are kept
}

// Removing is the phase of an environment whose units are gone, and whose processes, store and files are being removed.
// If the command that destroys the environment is interrupted, the next such command continues in this phase.
const Removing = "removing"

// Environment is one environment's directory and record.
type Environment struct {
	Dir string // absolute
	Record
}

// Environment reads the environment called name. It returns ErrNoEnvironment if there is no such environment, and
// different errors if no environment can have that name, or if the environment's directory was renamed.
func (h Home) Environment(name string) (Environment, error) {
	if err := CheckName(name); err != nil {
		return Environment{}, err
	}
	e, err := Load(h.Path(name))
	if err != nil {
		return e, err
	}

	if e.Name != name {
		return e, fmt.Errorf(
			"cannot use %q as model %q: the directory belongs to model %q, so its name must be the name of that model",
			e.Dir, name, e.Name,
		)
	}

	return e, nil
}

// Load reads the environment in a directory, and makes the paths in its State absolute. It returns ErrNoEnvironment if
// the directory has no environment.
func Load(dir string) (Environment, error) {
	record, err := readRecord(dir)
	if err != nil {
		return Environment{}, err
	}

	e := Environment{Dir: dir, Record: record}
	e.State, err = e.LocateState(e.State)
	return e, err
}

// readRecord reads the record of the environment in a directory. It returns ErrNoEnvironment if the directory
// has no environment.
func readRecord(dir string) (r Record, err error) {
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%w %q in %s", ErrNoEnvironment, filepath.Base(dir), filepath.Dir(dir))
	}
	if err != nil {
		return r, fmt.Errorf("cannot read the model: %w", err)
	}

	err = yaml.Unmarshal(data, &r)
	if err != nil {
		return r, fmt.Errorf("cannot read %q: %w", filepath.Join(dir, recordFile), err)
	}

	return r, nil
}

// Save writes environment.yaml, with the state's URL as relativeURL returns it. An environment exists if this file
// exists. Once Save has returned without an error, the file survives a power failure.
func (e Environment) Save() error {
	record := e.Record
	var err error
	if record.State, err = e.relativeURL(e.State); err != nil {
		return err
	}

	data, err := yaml.Marshal(record)
	if err != nil {
		return fmt.Errorf("cannot write the model: %w", err)
	}
	if err := osutil.WriteFile(filepath.Join(e.Dir, recordFile), data, 0o600); err != nil {
		return fmt.Errorf("cannot write the model: %w", err)
	}

	return nil
}

// StateFile returns the path of the store's file if --state was not given.
func (e Environment) StateFile() string { return filepath.Join(e.Dir, "state", "state.db") }

// ToolsDir returns the directory with the binary that the environment runs, and its symlinks.
func (e Environment) ToolsDir() string { return filepath.Join(e.Dir, "tools", e.Tools) }

// MachineDir returns a local machine's directory.
func (e Environment) MachineDir(id string) string { return filepath.Join(e.Dir, "machines", id) }

// MachineDirs returns the directories of the existing local machines. Machine 0's directory is
// the first, even if it does not exist.
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

// SecretKeys returns the file with the keys that seal secrets, or "" if the environment has no directory.
func (e Environment) SecretKeys() keyfile.File {
	if e.Dir == "" {
		return ""
	}
	return keyfile.In(e.Dir)
}

// LogFile returns the log file of a local machine's agent.
func (e Environment) LogFile(id string) string { return filepath.Join(e.MachineDir(id), "agent.log") }

// credentialsFolder is the directory for copies of the files that the state's URL names. With these copies, a copy of the
// environment's directory is complete.
const credentialsFolder = "credentials"

// maxCredential is the maximum size of a credential's file in bytes.
const maxCredential = 1 << 20

// credentialOptions are the options of a state's URL that name files.
var credentialOptions = []string{"ca", "cert", "key", "password-file"}

// KeepCredentials copies the credential files that a store's URL names into the environment's directory, readable
// only by their owner. It returns the URL that names the copies. The caller can call it again. The name of a copy
// contains the checksum of its content, so that no copy replaces a different copy that is in use. KeepCredentials
// refuses a secret file to which other users have access.
func (e Environment) KeepCredentials(state string) (string, error) {
	return mapCredentialFiles(state, func(option, path string) (string, error) {
		data, err := osutil.ReadUpTo(path, maxCredential)
		if err != nil {
			return "", fmt.Errorf("cannot read the file of option %q in the state's URL: %w", option, err)
		}
		isSecret := option == "key" || option == "password-file"
		if isSecret && isAccessibleToOthers(path) {
			return "", fmt.Errorf("other users have access to the file %[1]q; run: chmod 600 %[1]q", path)
		}

		folder := filepath.Join(e.Dir, credentialsFolder)
		if err := osutil.MkdirAll(folder, 0o700); err != nil {
			return "", fmt.Errorf("cannot create the directory of credentials: %w", err)
		}

		copyPath := filepath.Join(folder, option+"-"+osutil.Digest(data)[:8])
		err = osutil.WriteFile(copyPath, data, 0o600)
		if err != nil {
			return copyPath, fmt.Errorf("cannot copy the file of option %q in the state's URL: %w", option, err)
		}

		return copyPath, nil
	})
}

// isAccessibleToOthers reports whether users other than the owner have any access to the file.
func isAccessibleToOthers(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o077 != 0
}

// DropCredentials removes the copies of credentials that e.State does not name.
func (e Environment) DropCredentials() error {
	folder := filepath.Join(e.Dir, credentialsFolder)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot list credentials: %w", err)
	}

	used := map[string]bool{}
	// The paths in e.State are absolute, as Load has made them.
	_, err = mapCredentialFiles(e.State, func(_, path string) (string, error) {
		used[path] = true
		return path, nil
	})
	if err != nil {
		return err
	}

	for _, entry := range entries {
		if path := filepath.Join(folder, entry.Name()); !used[path] {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// LocateState returns the URL of a store with absolute paths. It resolves relative paths, such
// as those of PortableState, against the environment's directory.
func (e Environment) LocateState(state string) (string, error) {
	dir, err := filepath.Abs(e.Dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the model's directory: %w", err)
	}

	path, isSQLite := strings.CutPrefix(state, sqliteScheme)
	isRelative := path != "" && !filepath.IsAbs(path)
	if isSQLite && isRelative {
		return sqliteScheme + filepath.Join(dir, path), nil
	}

	return mapCredentialFiles(state, func(_, path string) (string, error) {
		if filepath.IsAbs(path) {
			return path, nil
		}
		return filepath.Join(dir, path), nil
	})
}

const sqliteScheme = "sqlite:"

// relativeURL returns the store's URL, with the paths of an SQLite file in the environment's directory and of
// copies of credentials relative to that directory. So the record stays valid if the directory moves. relativeURL
// keeps all other paths. If the saved record already names that store, relativeURL returns the record's URL
// unchanged. Older versions of bijou write absolute paths, and an operator may return to such a version.
func (e Environment) relativeURL(state string) (string, error) {
	if saved, err := readRecord(e.Dir); err == nil && saved.State != "" {
		if located, err := e.LocateState(saved.State); err == nil && located == state {
			return saved.State, nil
		}
	}

	if relative, isInside := strings.CutPrefix(state, sqliteScheme+e.Dir+"/"); isInside {
		return sqliteScheme + relative, nil
	}

	return mapCredentialFiles(state, func(_, path string) (string, error) {
		if relative, isInside := strings.CutPrefix(path, filepath.Join(e.Dir, credentialsFolder)+"/"); isInside {
			return filepath.Join(credentialsFolder, relative), nil
		}
		return path, nil
	})
}

// mapCredentialFiles replaces the path of each credential file in a store's URL. It calls replace with the name of the
// URL's option and the path, and returns the first error of replace. It returns a URL without such options unchanged.
// It also returns a malformed URL unchanged, since opening that URL reports the reason.
func mapCredentialFiles(state string, replace func(option, path string) (string, error)) (string, error) {
	// Only URLs of etcd have such options.
	base, query, hasQuery := strings.Cut(state, "?")
	if !hasQuery || !strings.HasPrefix(state, "etcd") {
		return state, nil
	}

	parts := strings.Split(query, "&")
	for i, part := range parts {
		option, value, _ := strings.Cut(part, "=")
		file, err := url.QueryUnescape(value)
		if err != nil || file == "" || !slices.Contains(credentialOptions, option) {
			continue
		}
		if file, err = replace(option, file); err != nil {
			return "", err
		}
		// A slash needs no escape in a query. Keep paths readable.
		parts[i] = option + "=" + strings.ReplaceAll(url.QueryEscape(file), "%2F", "/")
	}

	return base + "?" + strings.Join(parts, "&"), nil
}
