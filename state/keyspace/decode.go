package keyspace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"bijou/state/number"
	"bijou/state/store"
)

// Encode returns the JSON of a key's value. It does not escape <, > and &, so that people can read the values
// with the store's own tools.
func Encode(key string, doc any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return nil, fmt.Errorf("cannot encode %q: %w", key, err)
	}

	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Decode decodes the JSON of a key. It returns [ErrDamaged], with the key in the message, if the value does
// not decode.
func Decode[T any](kv store.KV) (doc T, err error) {
	err = DecodeInto(kv, &doc)
	return doc, err
}

// Reader is a View or a Tx.
type Reader interface {
	Get(key string) (value []byte, ok bool, err error)
	List(prefix string) ([]store.KV, error)
	Skips(err error) bool
}

// Load reads and decodes a key. It returns ok false if the key is absent, and [ErrDamaged] if the value does not
// decode. In an Update the commit becomes conditional on the key, as after View.Get.
func Load[T any](r Reader, key string) (doc T, ok bool, err error) {
	value, ok, err := r.Get(key)
	if err != nil {
		return doc, false, err
	}
	if !ok {
		return doc, false, nil
	}
	doc, err = Decode[T](store.KV{Key: key, Value: value})
	return doc, err == nil, err
}

// LoadOrZero does what Load does, and returns the zero value for an absent key.
func LoadOrZero[T any](r Reader, key string) (T, error) {
	doc, _, err := Load[T](r, key)
	return doc, err
}

// LoadExisting does what Load does, and returns ErrNotFound with the formatted text for an absent key.
func LoadExisting[T any](r Reader, key, format string, args ...any) (T, error) {
	doc, ok, err := Load[T](r, key)
	if err != nil {
		return doc, err
	}
	if !ok {
		return doc, Refuse(ErrNotFound, format, args...)
	}

	return doc, nil
}

// LoadChildren reads the records directly below the prefix, sorted by key. For each record it calls setName,
// which stores the part of the key after the prefix in the record. It skips records that do not decode; see
// View.Skips.
func LoadChildren[T any](r Reader, prefix string, setName func(doc *T, name string)) ([]T, error) {
	kvs, err := r.List(prefix)
	if err != nil {
		return nil, err
	}

	var docs []T
	for _, kv := range kvs {
		name := kv.Key[len(prefix):]
		if strings.Contains(name, "/") {
			continue
		}

		doc, err := Decode[T](kv)
		if r.Skips(err) {
			continue
		}
		if err != nil {
			return nil, err
		}

		setName(&doc, name)
		docs = append(docs, doc)
	}

	return docs, nil
}

// DecodeInto decodes a value into a document. It returns [ErrDamaged] if the value does not decode. Numbers in a
// field of type any keep the form in which they were written.
func DecodeInto(kv store.KV, doc any) error {
	if err := number.Unmarshal(kv.Value, doc); err != nil {
		return &decodeError{kv.Key, err}
	}

	return nil
}

// GetAt reads a key into doc, and returns the revision at which the key was written, or 0 if the key is
// absent. It adds no condition to the commit.
func (v *View) GetAt(key string, doc any) (revision int64, err error) {
	kv, err := v.GetKV(key)
	if err != nil {
		return 0, err
	}
	if kv.Revision == 0 {
		return 0, nil
	}
	return kv.Revision, DecodeInto(kv, doc)
}
