package release

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"bijou/state/durable"
)

// WriteFile writes a file so that after a loss of power it is there as it was or as it is now,
// and as it is now once Keep has returned.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := renameio.WriteFile(path, data, mode, renameio.WithTempDir(filepath.Dir(path))); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}

// WriteJSON keeps a document as JSON.
func WriteJSON(path string, doc any) error {
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return WriteFile(path, data, 0o600)
}

// ReadJSON reads a document that WriteJSON has written; it leaves doc alone if there is
// none.
func ReadJSON(path string, doc any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(data, doc)
}

// FileDigest returns a file's SHA-256 sum, in hexadecimal.
func FileDigest(path string) (string, error) {
	sum, err := sumFile(path)
	return hex.EncodeToString(sum[:]), err
}
