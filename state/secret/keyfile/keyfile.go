// Package keyfile reads and writes secret-keys.yaml in an environment's directory, with the keys
// that seal the environment's secrets. The keys are in no store and in no log.
package keyfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"bijou/state/osutil"
	"bijou/state/secret"
)

// FileName is the file's, below the environment's folder.
const FileName = "secret-keys.yaml"

// File is its path; empty where there is no folder of the environment.
type File string

// In returns the file of an environment's folder.
func In(dir string) File { return File(filepath.Join(dir, FileName)) }

type document struct {
	Keys    []entry        `yaml:"keys"`
	Unknown map[string]any `yaml:",inline"` // what a newer binary has there: it stays
}

type entry struct {
	secret.Key `yaml:",inline"`
	Unknown    map[string]any `yaml:",inline"`
}

// Read returns the keys. It returns secret.ErrNoKey if there is no file.
func (f File) Read() (secret.Keyring, error) {
	if f == "" {
		return nil, fmt.Errorf("%w: this host has no directory of the model", secret.ErrNoKey)
	}

	data, err := osutil.ReadUpTo(string(f), maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s is missing here: copy it from a different host of the model",
			secret.ErrNoKey, f)
	case err != nil:
		return nil, fmt.Errorf("cannot read the keys for secrets: %w", err)
	}

	return Parse(data)
}

// Sealer returns the keys as they are in the file now. It returns secret.ErrNoKey if there is no file.
func (f File) Sealer(context.Context) (secret.Sealer, error) {
	ring, err := f.Read()
	if err != nil {
		return nil, err
	}
	return ring, nil
}

// maxFile is in bytes: an operator may name any file.
const maxFile = 1 << 20

// Parse reads the content of such a file. Its errors show nothing of it.
func Parse(data []byte) (secret.Keyring, error) {
	var doc document
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Keys) == 0 {
		return nil, errors.New("cannot read the keys for secrets: the file has none")
	}

	ring := make(secret.Keyring, len(doc.Keys))
	for i, e := range doc.Keys {
		ring[i] = e.Key
	}
	return ring, nil
}

// Write replaces the file, which its owner alone can read. What a newer binary has put there stays,
// with the keys that stay.
func (f File) Write(ring secret.Keyring) error {
	var before document
	if old, err := osutil.ReadUpTo(string(f), maxFile); err == nil && yaml.Unmarshal(old, &before) != nil {
		before = document{} // it is replaced
	}

	doc := document{Unknown: before.Unknown}
	for _, key := range ring {
		e := entry{Key: key}
		if i := slices.IndexFunc(before.Keys, func(old entry) bool { return old.Key == key }); i >= 0 {
			e = before.Keys[i]
		}
		doc.Keys = append(doc.Keys, e)
	}

	data, err := yaml.Marshal(doc)
	if err != nil {
		return fmt.Errorf("cannot write the keys for secrets: %w", err)
	}
	if err := osutil.WriteFile(string(f), data, 0o600); err != nil {
		return fmt.Errorf("cannot write the keys for secrets: %w", err)
	}

	return nil
}
