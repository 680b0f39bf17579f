package state

import (
	"strings"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

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
