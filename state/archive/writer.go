package archive

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"bijou/state/durable"
)

// Key is one key with its value.
type Key struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// Writer writes a backup, which is not whole before Close.
type Writer struct {
	zip  *zip.Writer
	sums []byte
}

// NewWriter begins a backup.
func NewWriter(w io.Writer) *Writer { return &Writer{zip: zip.NewWriter(w)} }

// Add adds a file with what content writes.
func (w *Writer) Add(name string, content func(io.Writer) error) error {
	if !fileNamePattern.MatchString(name) {
		return fmt.Errorf("cannot back up %q: a backup has no file of that name", name)
	}
	return w.addFile(name, content)
}

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

// AddKeys adds all keys.
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

// Close completes the backup.
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
	sums := w.sums
	err = w.addFile(sumsFile, func(to io.Writer) error {
		_, err := to.Write(sums)
		return err
	})
	return errors.Join(err, w.zip.Close())
}

// WriteFile has f write a backup to the file, which appears once it is whole, readable by
// its owner only. A file that is there is replaced with force; otherwise it returns
// fs.ErrExist.
func WriteFile(path string, force bool, f func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("cannot write %q: %w", path, fs.ErrExist)
	}
	file, err := renameio.NewPendingFile(path, renameio.WithPermissions(0o600), renameio.IgnoreUmask())
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	defer func() { _ = file.Cleanup() }() // does nothing after the replacement
	if err := f(file); err != nil {
		return err
	}
	if err := errors.Join(file.CloseAtomicallyReplace(), durable.Sync(filepath.Dir(path))); err != nil {
		return fmt.Errorf("cannot write %q: %w", path, err)
	}
	return nil
}
