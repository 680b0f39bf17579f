package state

import (
	"context"
	"io"
	"io/fs"
	"strings"

	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/osutil"
)

// DownloadBlob writes a blob to a file. It replaces the file atomically, and only if the content has the sum.
// It returns ErrNotFound if there is no such blob.
func (s *State) DownloadBlob(ctx context.Context, sum, path string, mode fs.FileMode) error {
	blob, err := s.OpenBlob(ctx, sum)
	if err != nil {
		return err
	}
	defer blob.Close()

	file, err := osutil.Create(path, mode)
	if err != nil {
		return err
	}
	defer file.Discard()

	// The last read from blob fails if the content does not have the sum.
	if _, err := io.Copy(file, blob); err != nil {
		return err
	}

	return file.Commit()
}

// ReferencedBlobs returns the sums of all blobs that a record refers to. It skips damaged records that agents
// write. For any other damaged record it returns an error.
func (v *View) ReferencedBlobs() (map[string]bool, error) {
	used := map[string]bool{}

	for _, prefix := range []string{keys.Charms, keys.Resources, keys.Actions, keys.Tools, keys.SecretContents, keys.Relations, keys.Services, keys.Units} {
		kvs, err := v.keys.List(prefix)
		if err != nil {
			return nil, err
		}

		for _, kv := range kvs {
			if !refersToBlob(kv.Key) {
				continue
			}
			record, err := keyspace.Decode[blobReferences](kv)
			// An agent's damaged record must not stop the callers. An operator's must, since its blob
			// could be lost.
			if isWrittenByAgents(prefix) && v.keys.Skips(err) {
				continue
			}
			if err != nil {
				return nil, err
			}

			// An empty field adds the key "", which is not the sum of a blob.
			used[record.SHA256] = true
			used[record.Blob] = true
			used[record.Output.Blob] = true
		}
	}

	return used, nil
}

// isWrittenByAgents reports whether agents write the records below the prefix. ReferencedBlobs skips an
// agent's damaged record. An operator's damaged record is an error, since the record's blob could be removed.
func isWrittenByAgents(prefix string) bool {
	return prefix != keys.Charms && prefix != keys.Resources && prefix != keys.Tools
}

// blobReferences decodes the sums from any record that refers to a blob: a charm, resource or binary,
// settings, an action, or the content of a secret.
type blobReferences struct {
	SHA256 string `json:"sha256"`
	Blob   string `json:"blob"`
	Output struct {
		Blob string `json:"blob"`
	} `json:"output"`
}

// refersToBlob reports whether the record at key can refer to a blob. Below the prefixes of relations,
// services and units, only records of settings can.
func refersToBlob(key string) bool {
	parts := strings.Split(key, "/")
	switch parts[0] + "/" {
	case keys.Relations:
		// Below apps are the settings of services.
		return len(parts) > 3 && (parts[2] == "settings" || parts[2] == "apps")
	case keys.Services:
		return len(parts) > 2 && key == keys.LeaderSettings(parts[1])
	case keys.Units:
		return len(parts) == 4 && parts[3] == "state" // units/mysql/0/state
	}

	// All records below the other prefixes of ReferencedBlobs can.
	return true
}
