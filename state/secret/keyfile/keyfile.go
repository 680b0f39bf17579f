// Package keyfile reads and writes secret-keys.yaml in an environment's directory. The file has the keys that
// seal the environment's secrets. The keys are never stored elsewhere or logged.
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

// FileName is the name of the file in the environment's directory.
const FileName = "secret-keys.yaml"

// File is the path of the file. It is empty on a host without a directory of the environment.
type File string

// In returns the file in an environment's directory.
func In(dir string) File { return File(filepath.Join(dir, FileName)) }

// document is the content of the file.
type document struct {
	Keys    []entry        `yaml:"keys"`
	Unknown map[string]any `yaml:",inline"` // fields of a newer binary, which Write keeps
}

// entry is a key in the file.
type entry struct {
	secret.Key `yaml:",inline"`
	Unknown    map[string]any `yaml:",inline"`
}

// Read returns the keys. It returns [secret.ErrNoKey] if the file does not exist, or if this host has no directory
// of the environment.
func (f File) Read() (secret.Keyring, error) {
	if f == "" {
		return nil, fmt.Errorf("%w: this host has no directory of the model", secret.ErrNoKey)
	}

	data, err := osutil.ReadUpTo(string(f), maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s is missing on this host: copy it from a different host of the model",
			secret.ErrNoKey, f)
	case err != nil:
		return nil, fmt.Errorf("cannot read the keys for secrets: %w", err)
	}

	return Parse(data)
}

// Sealer reads the file and returns its keys. It returns [secret.ErrNoKey] if the file does not exist.
func (f File) Sealer(context.Context) (secret.Sealer, error) {
	ring, err := f.Read()
	if err != nil {
		return nil, err
	}
	return ring, nil
}

// maxFile limits the file, in bytes, since an operator can give any path.
const maxFile = 1 << 20

// Parse parses the content of a file of keys. Its errors do not contain any part of that content.
func Parse(data []byte) (secret.Keyring, error) {
	var doc document
	if yaml.Unmarshal(data, &doc) != nil || len(doc.Keys) == 0 {
		return nil, errors.New("cannot read the keys for secrets: the file contains no keys")
	}

	ring := make(secret.Keyring, len(doc.Keys))
	for i, e := range doc.Keys {
		ring[i] = e.Key
	}
	return ring, nil
}

// readDocument returns the content of the file, with unknown fields. It returns an empty document if the file
// cannot be read or is damaged.
func (f File) readDocument() document {
	data, err := osutil.ReadUpTo(string(f), maxFile)
	if err != nil {
		return document{}
	}

	var doc document
	if yaml.Unmarshal(data, &doc) != nil {
		return document{}
	}
	return doc
}

// Write replaces the file, which only its owner can read. It keeps the file's unknown fields, and those of
// the keys that are still in the ring, unless the file cannot be read or is damaged.
func (f File) Write(ring secret.Keyring) error {
	before := f.readDocument()
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
