// Package shapes compares the records that state/access accepts from agents with the records that readers can
// decode.
package shapes

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bijou/state/access"
	"bijou/state/keyspace"
)

// Check checks that state/access accepts under these keys exactly the values that decode as a T. It ignores the
// members in without, which no agent can change.
func Check[T any](t *testing.T, without []string, keys ...string) {
	t.Helper()
	record := reflect.TypeFor[T]()

	for _, key := range keys {
		for _, value := range oddValues(record, without) {
			_, err := keyspace.Decode[T](keyspace.KeyValue{Key: key, Value: []byte(value)})
			if taken := access.IsShaped(key, []byte(value)); taken != (err == nil) {
				t.Errorf("%s of %s: the table takes it: %t; its readers: %v", value, key, taken, err)
			}
		}
	}
}

// oddValues returns records with a single member, one for each member and kind of JSON value.
func oddValues(record reflect.Type, without []string) (values []string) {
	kinds := []string{`"x"`, `""`, `7`, `-1.5`, `1e400`, `true`, `null`, `[]`, `["x"]`, `[7]`, `[{}]`, `{}`, `{"a":"x"}`, `{"a":7}`, `{"1":"x"}`, `"2026-01-02T03:04:05Z"`}

	for i := range record.NumField() {
		f := record.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			values = append(values, oddValues(f.Type, without)...)
			continue
		case name == "" || name == "-" || slices.Contains(without, name):
			continue
		}

		for _, kind := range kinds {
			values = append(values, fmt.Sprintf(`{%q:%s}`, name, kind), fmt.Sprintf(`{%q:%s}`, strings.ToUpper(name), kind))
		}
		for _, below := range oddMembers(f.Type) {
			values = append(values, fmt.Sprintf(`{%q:%s}`, name, below))
		}
	}

	return values
}

// oddMembers returns values for a member that is a record or a list of records: those of oddValues.
func oddMembers(member reflect.Type) (values []string) {
	_, decodesItself := reflect.PointerTo(member).MethodByName("UnmarshalJSON")
	switch {
	case member.Kind() == reflect.Pointer:
		return oddMembers(member.Elem())
	case member.Kind() == reflect.Slice:
		for _, value := range oddMembers(member.Elem()) {
			values = append(values, "["+value+"]")
		}
	case member.Kind() == reflect.Struct && !decodesItself:
		return oddValues(member, nil)
	}

	return values
}
