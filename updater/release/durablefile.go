package release

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"bijou/state/durable"
)

// WriteJSON keeps a document as JSON.
func WriteJSON(path string, doc any) error {
	data, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, data, 0o600)
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
