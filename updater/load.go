package updater

import (
	"context"
	"encoding/json"
	"strings"

	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// LoadConfig reads the configuration.
func LoadConfig(v *keyspace.View) (record.Config, error) {
	kvs, err := v.List(keys.AllConfig)
	if err != nil {
		return record.Config{}, err
	}

	stored := map[string]json.RawMessage{}
	for _, kv := range kvs {
		stored[strings.TrimPrefix(kv.Key, keys.AllConfig)] = kv.Value
	}
	return record.ReadConfig(stored), nil
}

// LoadRequest reads the running or last update. It returns nil if there was no update.
func LoadRequest(v *keyspace.View) (*record.Request, error) {
	return ReadKey[record.Request](v, keys.Current)
}

// LoadWorkers reads all workers' records.
func LoadWorkers(v *keyspace.View) (map[int]record.Status, error) {
	kvs, err := v.List(keys.Workers)
	if err != nil {
		return nil, err
	}
	return DecodeByLRN[record.Status](kvs, keys.Workers)
}

// PeekServers reads the records below the prefix, and returns them by the LRN of their boot server. Unlike
// other reads, it does not make the transaction fail if the records change.
func PeekServers[T any](v *keyspace.View, prefix string) (map[int]T, error) {
	kvs, err := v.ListUnguarded(prefix)
	if err != nil {
		return nil, err
	}
	return DecodeByLRN[T](kvs, prefix)
}

// ReadKey reads one key. It returns nil if the key is absent, and with an error.
func ReadKey[T any](v *keyspace.View, key string) (*T, error) {
	doc, ok, err := keyspace.Load[T](v, key)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, nil
	}
	return &doc, nil
}

// DecodeByLRN decodes the records below the prefix, and returns them by the LRN of their boot server. It
// ignores keys that do not consist of the prefix and an LRN.
func DecodeByLRN[T any](kvs []keyspace.KeyValue, prefix string) (map[int]T, error) {
	found := map[int]T{}
	for _, kv := range kvs {
		lrn, ok := record.ParseServerKey(prefix, kv.Key)
		if !ok {
			continue
		}
		doc, err := keyspace.Decode[T](kv)
		if err != nil {
			return nil, err
		}
		found[lrn] = doc
	}

	return found, nil
}

// Proven reports whether the version that the workers have installed is known to work. A process that finds a
// new program in place of its own calls Proven before it restarts with that program. The request is always
// written before its version is installed, so Proven sees it.
func Proven(ctx context.Context, s *keyspace.Space) (bool, error) {
	return keyspace.Read(ctx, s, func(v *keyspace.View) (bool, error) {
		r, err := LoadRequest(v)
		if err != nil {
			return false, err
		}

		recovery, err := ReadKey[record.Recovery](v, keys.Recovery)
		if err != nil {
			return false, err
		}
		gate, err := keyspace.LoadOrZero[record.Gate](v, keys.Gate)
		if err != nil {
			return false, err
		}

		return record.IsProven(r, gate, recovery), nil
	})
}
