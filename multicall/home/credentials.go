package home

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/state/digest"
	"bijou/state/durable"
)

// credentialsFolder is where an environment keeps the files that its state's URL
// names, so that a copy of the environment's folder has all that it needs.
const credentialsFolder = "credentials"

// credentialOptions are the options of a state's URL that name files.
var credentialOptions = []string{"ca", "cert", "key", "password-file"}

// KeepCredentials copies the files that a state's URL names into the environment's folder,
// readable by its owner only, and returns the URL that names the copies. It may be
// repeated. A copy's name has its content's checksum, so that none replaces one that is in
// use.
func (e Environment) KeepCredentials(state string) (string, error) {
	return mapCredentialFiles(state, func(option, path string) (string, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("cannot read the %s of the state's URL: %w", option, err)
		}
		if info, err := os.Stat(path); err == nil && (option == "key" || option == "password-file") && info.Mode().Perm()&0o077 != 0 {
			return "", fmt.Errorf("file %q may be read by others: chmod 600 it", path)
		}
		folder := filepath.Join(e.Dir, credentialsFolder)
		if err := durable.MkdirAll(folder, 0o700); err != nil {
			return "", fmt.Errorf("cannot make the folder of credentials: %w", err)
		}
		kept := filepath.Join(folder, option+"-"+digest.Of(data)[:8])
		if err := durable.WriteFile(kept, data, 0o600); err != nil {
			return "", fmt.Errorf("cannot keep the %s of the state's URL: %w", option, err)
		}
		return kept, nil
	})
}

// DropCredentials removes the copies that the state's URL does not name.
func (e Environment) DropCredentials() error {
	folder := filepath.Join(e.Dir, credentialsFolder)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot list credentials: %w", err)
	}
	used := map[string]bool{}
	_, err = mapCredentialFiles(e.State, func(_, path string) (string, error) {
		used[path] = true
		return path, nil
	})
	for _, entry := range entries {
		if path := filepath.Join(folder, entry.Name()); !used[path] {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// absoluteURL resolves files in the environment's folder to absolute paths, as processes
// want them.
func (e Environment) absoluteURL(state string) (string, error) {
	dir, err := filepath.Abs(e.Dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the environment's folder: %w", err)
	}
	if path, file := strings.CutPrefix(state, sqliteScheme); file && path != "" && !filepath.IsAbs(path) {
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

// relativeURL names those files relative to the folder, so that the record holds wherever
// the folder is. What the record says already is left as it is: older binaries name their
// file by its absolute path, and may be gone back to.
func (e Environment) relativeURL(state string) (string, error) {
	if was, err := readRecord(e.Dir); err == nil && was.State != "" {
		if same, err := e.absoluteURL(was.State); err == nil && same == state {
			return was.State, nil
		}
	}
	if rest, inside := strings.CutPrefix(state, sqliteScheme+e.Dir+"/"); inside {
		return sqliteScheme + rest, nil
	}
	return mapCredentialFiles(state, func(_, path string) (string, error) {
		if rest, inside := strings.CutPrefix(path, filepath.Join(e.Dir, credentialsFolder)+"/"); inside {
			return filepath.Join(credentialsFolder, rest), nil
		}
		return path, nil
	})
}

// mapCredentialFiles replaces the path of each file that a state's URL names. A URL that
// cannot be parsed is returned as it is: whoever opens it reports why.
func mapCredentialFiles(state string, path func(option, path string) (string, error)) (string, error) {
	place, query, ok := strings.Cut(state, "?")
	if !ok || !strings.HasPrefix(state, "etcd") {
		return state, nil
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		option, value, _ := strings.Cut(part, "=")
		file, err := url.QueryUnescape(value)
		if err != nil || file == "" || !slices.Contains(credentialOptions, option) {
			continue
		}
		if file, err = path(option, file); err != nil {
			return "", err
		}
		parts[i] = option + "=" + strings.ReplaceAll(url.QueryEscape(file), "%2F", "/")
	}
	return place + "?" + strings.Join(parts, "&"), nil
}
