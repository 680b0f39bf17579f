package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"bijou/state/store"
)

// encode leaves HTML's characters as they are, for whoever reads the store with its own
// tools.
func encode(key string, doc any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("cannot encode %q: %w", key, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func decode[T any](kv store.KV) (doc T, err error) {
	if err := json.Unmarshal(kv.Value, &doc); err != nil {
		return doc, fmt.Errorf("cannot decode %q: %w", kv.Key, err)
	}
	return doc, nil
}

func load[T any](v *View, key string) (doc T, ok bool, err error) {
	value, ok, err := v.get(key)
	if err != nil || !ok {
		return doc, false, err
	}
	doc, err = decode[T](store.KV{Key: key, Value: value})
	return doc, err == nil, err
}

// loadExisting is load with ErrNotFound, in those words, for a key that is absent.
func loadExisting[T any](v *View, key, format string, args ...any) (T, error) {
	doc, ok, err := load[T](v, key)
	if err == nil && !ok {
		err = refuse(ErrNotFound, format, args...)
	}
	return doc, err
}

// loadChildren reads what is directly below the prefix, by key; name puts into each what
// its key says.
func loadChildren[T any](v *View, prefix string, name func(doc *T, rest string)) ([]T, error) {
	kvs, err := v.list(prefix)
	if err != nil {
		return nil, err
	}
	var all []T
	for _, kv := range kvs {
		rest := kv.Key[len(prefix):]
		if strings.Contains(rest, "/") {
			continue
		}
		doc, err := decode[T](kv)
		if err != nil {
			return nil, err
		}
		name(&doc, rest)
		all = append(all, doc)
	}
	return all, nil
}
