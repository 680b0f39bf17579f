package state

import (
	"context"
	"io"
	"strings"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// PutBlob is keyspace.Space.PutBlob: it stores what r holds under its sha256.
func (s *State) PutBlob(ctx context.Context, r io.Reader) (sum string, size int64, err error) {
	return s.space.PutBlob(ctx, r)
}

// PutFile is PutBlob for a file that may be large.
func (s *State) PutFile(ctx context.Context, r io.ReaderAt) (sum string, size int64, err error) {
	return s.space.PutFile(ctx, r)
}

// OpenBlob returns a reader of a blob by its sha256, which verifies it. ErrNotFound.
func (s *State) OpenBlob(ctx context.Context, sum string) (io.ReadCloser, error) {
	return s.space.OpenBlob(ctx, sum)
}

// ReferencedBlobs returns the sums of all blobs that something refers to.
func (v *View) ReferencedBlobs() (map[string]bool, error) {
	used := map[string]bool{}
	charms, err := v.Charms()
	if err != nil {
		return nil, err
	}
	for _, c := range charms {
		used[c.SHA256] = true
	}
	if err := v.addBlobsOfOperators(used); err != nil { // resources, actions
		return nil, err
	}
	if err := v.addBlobsOfTools(used); err != nil {
		return nil, err
	}
	for _, prefix := range []string{keys.Relations, keys.Services, keys.Units} {
		if err := v.addBlobsBelow(prefix, used); err != nil {
			return nil, err
		}
	}
	return used, nil
}

func (v *View) addBlobsBelow(prefix string, used map[string]bool) error {
	kvs, err := v.keys.List(prefix)
	if err != nil {
		return err
	}
	for _, kv := range kvs {
		if !holdsSettings(kv.Key) {
			continue
		}
		doc, err := keyspace.Decode[settingsDoc](kv)
		if err != nil {
			return err
		}
		used[doc.Blob] = true
	}
	return nil
}

func holdsSettings(key string) bool {
	parts := strings.Split(key, "/")
	switch {
	case len(parts) < 3:
		return false
	case parts[0]+"/" == keys.Relations:
		return len(parts) > 3 && (parts[2] == "settings" || parts[2] == "apps")
	case parts[0]+"/" == keys.Services:
		return key == keys.LeaderSettings(parts[1])
	}
	return len(parts) == 4 && parts[3] == "state"
}

func (v *View) addBlobsOfOperators(used map[string]bool) error {
	kvs, err := v.keys.List(keys.Resources)
	if err != nil {
		return err
	}
	for _, kv := range kvs {
		r, err := keyspace.Decode[Resource](kv)
		if err != nil {
			return err
		}
		used[r.SHA256] = true
	}
	if kvs, err = v.keys.List(keys.Actions); err != nil {
		return err
	}
	for _, kv := range kvs {
		a, err := keyspace.Decode[Action](kv)
		if err != nil {
			return err
		}
		used[a.Output.Blob] = true
	}
	return nil
}

func (v *View) addBlobsOfTools(used map[string]bool) error {
	all, err := v.AllTools()
	for _, t := range all {
		used[t.SHA256] = true
	}
	return err
}
