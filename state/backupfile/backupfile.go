// Package backupfile reads and writes the file of a backup: a zip archive, which any unzip program opens.
//
//	keys.jsonl                       each key with its JSON, one per line
//	blobs/SHA256                     charms, resources, and settings too large for a key
//	credentials/NAME                 the files that the state's URL names (optional)
//	machines/ID/units/SERVICE-N.tar  a unit's directory (optional)
//	machines/ID/storage/NAME-N.tar   the content of a storage (optional)
//	header.json                      the Header: the backup's origin and contents
//	SHA256SUMS                       the sums of all other files, as sha256sum prints them
//
// It does not interpret the keys, and does not restore backups.
package backupfile

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"bijou/state/osutil"
)

// Format is the version of the format that this code reads and writes.
const Format = 1

// The kinds of backups.
const (
	Environment = "environment"
	Keyspace    = "neco" // the updater's keys
)

// Header describes a backup.
type Header struct {
	Format int    `json:"format" yaml:"format"`
	Kind   string `json:"kind" yaml:"kind"`
	Bijou  string `json:"bijou" yaml:"bijou"` // version of the bijou binary that wrote the backup

	// The environment's name, UUID and provider, and the URL of its store. In the URL, paths of files in the
	// environment's directory are relative to that directory.
	Name     string `json:"name,omitempty" yaml:"name,omitempty"`
	UUID     string `json:"uuid,omitempty" yaml:"uuid,omitempty"`
	Provider string `json:"provider,omitempty" yaml:"provider,omitempty"`
	State    string `json:"state,omitempty" yaml:"state,omitempty"`

	Time        time.Time `json:"time" yaml:"time"`
	Revision    int64     `json:"revision" yaml:"revision"`         // the store's revision at which all keys were read
	StateFormat int       `json:"state-format" yaml:"state-format"` // the format of the keys
	Keys        int       `json:"keys" yaml:"keys"`                 // number of keys
	Blobs       int       `json:"blobs" yaml:"blobs"`               // number of blobs

	Has   []string `json:"has" yaml:"has"`     // the parts that the backup contains, in words
	Lacks []string `json:"lacks" yaml:"lacks"` // the parts that the backup does not contain, in words
}

// ErrDamaged is returned if the file is not a backup, or was changed or truncated after it was written.
var ErrDamaged = errors.New("the file is not a complete backup")

const (
	keysFile   = "keys.jsonl"
	headerFile = "header.json"
	sumsFile   = "SHA256SUMS"
)

// fileNamePattern matches the names of all files of a backup except headerFile and sumsFile.
var fileNamePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(keys\.jsonl|blobs/[0-9a-f]{64}|credentials/[a-z][a-z0-9-]*|machines/[0-9]+/(units|storage)/[a-z][a-z0-9-]*\.tar)$`)
})

// BlobName returns the name of the file with the blob.
func BlobName(sum string) string { return "blobs/" + sum }

// SecretKeysName returns the name of the file with the keys of secrets.
func SecretKeysName() string { return CredentialName("secret-keys") }

// CredentialName returns the name of the file with the credential.
func CredentialName(name string) string { return "credentials/" + name }

// FolderName returns the name of the file, in a backup, that has the content of a unit's directory.
func FolderName(machine, name string) string {
	return fmt.Sprintf("machines/%s/units/%s.tar", machine, name)
}

// StorageName returns the name of the file with a storage's content.
func StorageName(machine, id string) string {
	return fmt.Sprintf("machines/%s/storage/%s.tar", machine, strings.ReplaceAll(id, "/", "-"))
}

// damagedError returns an error that wraps ErrDamaged. Its text is that of ErrDamaged and the formatted text.
func damagedError(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrDamaged}, args...)...)
}

// Key is one key with its value.
type Key struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Writer writes a backup. The backup is incomplete until Close returns.
type Writer struct {
	zip  *zip.Writer
	sums []byte
}

// NewWriter starts a backup.
func NewWriter(w io.Writer) *Writer { return &Writer{zip: zip.NewWriter(w)} }

// Add adds a file, and calls content to write it. It returns an error if a backup cannot have a file of this
// name.
func (w *Writer) Add(name string, content func(io.Writer) error) error {
	if !fileNamePattern().MatchString(name) {
		return fmt.Errorf("cannot back up %q: a backup cannot contain a file with this name", name)
	}
	return w.addFile(name, content)
}

// addFile adds a file to the archive, and its sum to the list of sums.
func (w *Writer) addFile(name string, content func(io.Writer) error) error {
	entry := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Now()}
	entry.SetMode(0o600)
	file, err := w.zip.CreateHeader(entry)
	if err != nil {
		return fmt.Errorf("cannot back up %q: %w", name, err)
	}

	hash := sha256.New()
	if err := content(io.MultiWriter(file, hash)); err != nil {
		return fmt.Errorf("cannot back up %q: %w", name, err)
	}

	w.sums = fmt.Appendf(w.sums, "%x  %s\n", hash.Sum(nil), name)
	return nil
}

// AddKeys adds the file of keys, with one JSON object per line. It must be called only once, with all keys,
// sorted.
func (w *Writer) AddKeys(keys []Key) error {
	return w.Add(keysFile, func(to io.Writer) error {
		e := json.NewEncoder(to)
		e.SetEscapeHTML(false)
		for _, k := range keys {
			if err := e.Encode(k); err != nil {
				return fmt.Errorf("cannot encode %q: %w", k.Key, err)
			}
		}

		return nil
	})
}

// Close adds the header and the sums, which completes the backup.
func (w *Writer) Close(h Header) error {
	h.Format = Format
	err := w.addFile(headerFile, func(to io.Writer) error {
		e := json.NewEncoder(to)
		e.SetIndent("", "  ")
		return e.Encode(h)
	})
	if err != nil {
		return err
	}

	// addFile adds the sum of each file to w.sums, but the file of sums must not contain its own sum.
	sums := w.sums
	err = w.addFile(sumsFile, func(to io.Writer) error {
		_, err := to.Write(sums)
		return err
	})
	if err != nil {
		return err
	}

	return w.zip.Close()
}

// WriteFile calls f to write a backup, and moves the file to path once it is complete. Only its owner can
// read the file. If there is already a file at path, WriteFile replaces it if force is true, and returns
// fs.ErrExist otherwise.
func WriteFile(path string, force bool, f func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("cannot write %q: %w", path, fs.ErrExist)
	}
	file, err := osutil.Create(path, 0o600, osutil.ExactMode)
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	defer file.Discard()

	if err := f(file); err != nil {
		return err
	}
	if err := file.Commit(); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}

	return nil
}
