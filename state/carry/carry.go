// Package carry copies unknown members from the JSON of a record to the JSON that replaces it. A newer binary
// has written them. An older binary that rewrites the record must not drop these members, since the
// environment may be upgraded again.
//
// It does no I/O.
package carry

import (
	"bytes"
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// Identified is implemented by records, and by parts of records, that a different record can replace at the
// same key or place. For example, an update of boot servers replaces the previous update, and a list may have
// many attempts. Over does not carry members over to a record with a different identity.
type Identified interface {
	// Identity returns a comparable value that distinguishes the record from its successors.
	Identity() any
}

// Over returns next, the JSON of doc, completed with members of old, the JSON that next replaces. It adds the
// members for which doc's type has no field. So a record keeps the members that newer binaries have written.
//
// Over works in structs, in the entries of maps, and in lists. It matches an element of a list with the old
// element of the same Identity. If the element's type does not have an Identity, Over matches it with an old
// element whose known members are all the same. Over changes nothing in values of type any, nor in types with
// their own JSON encoding (json.Unmarshaler).
//
// A known member that next lacks was removed by the program, and stays removed. But if next omits a struct
// since it is zero, the struct's unknown members stay.
func Over(old, next []byte, doc any) []byte {
	t := reflect.TypeOf(doc)
	if len(old) == 0 || !holdsStructs(t) || bytes.Equal(old, next) || knowsAll(old, t) {
		return next
	}
	return merge(old, next, t)
}

// Same reports whether two JSON values are equal except for the order of objects' members.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}

	// A different order changes neither the length nor the sum.
	if len(a) != len(b) || sumBytes(a) != sumBytes(b) {
		return false
	}

	av, aok := parse(a)
	bv, bok := parse(b)
	return aok && bok && reflect.DeepEqual(av, bv)
}

// sumBytes returns a checksum that does not depend on the order of the bytes.
func sumBytes(data []byte) (sum int) {
	for _, b := range data {
		sum += int(b) * int(b)
	}
	return sum
}

func parse(data []byte) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err := d.Decode(&value)
	return value, err == nil
}

// holdsStructs reports whether JSON of the type may have unknown members.
func holdsStructs(t reflect.Type) bool {
	if t == nil {
		return false
	}

	switch t.Kind() {
	case reflect.Struct:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Array:
		return holdsStructs(t.Elem())
	}

	return false
}

// knowsAll reports whether the type knows all members of the old record. It is a fast path: nearly all
// records have no unknown members.
func knowsAll(old []byte, t reflect.Type) bool {
	d := json.NewDecoder(bytes.NewReader(old))
	d.DisallowUnknownFields()
	return d.Decode(reflect.New(t).Interface()) == nil
}

// merge returns next completed with the unknown members of old. t is the type of both.
func merge(old, next json.RawMessage, t reflect.Type) json.RawMessage {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if hasOwnJSON(t) || isOther(old, next, t) {
		return next
	}

	switch t.Kind() {
	case reflect.Struct:
		fields := map[string]reflect.Type{}
		addFields(fields, t)
		return mergeObject(old, next, func(name string) (reflect.Type, bool) {
			field, known := fields[strings.ToLower(name)]
			return field, known
		})
	case reflect.Map:
		// The pointer marks a missing entry as removed; a missing struct would count as zero.
		entry := reflect.PointerTo(t.Elem())
		return mergeObject(old, next, func(string) (reflect.Type, bool) { return entry, true })
	case reflect.Slice, reflect.Array:
		return mergeList(old, next, t.Elem())
	}

	return next
}

// hasOwnJSON reports whether the type defines its own encoding or decoding.
func hasOwnJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	for _, own := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if p.Implements(own) {
			return true
		}
	}

	return false
}

// addFields adds the types of t's fields to fields, by JSON name in lower case, since encoding/json ignores
// case. It adds the fields of embedded structs level by level, since a field hides those of deeper levels.
func addFields(fields map[string]reflect.Type, t reflect.Type) {
	for level := []reflect.Type{t}; len(level) > 0; {
		var embedded []reflect.Type
		for _, t := range level {
			embedded = append(embedded, addOwnFields(fields, t)...)
		}
		level = embedded
	}
}

// addOwnFields adds the types of t's own fields whose names are not in fields. It returns the embedded structs.
func addOwnFields(fields map[string]reflect.Type, t reflect.Type) (embedded []reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}

		name, _, _ := strings.Cut(tag, ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && name == "" && inner.Kind() == reflect.Struct {
			embedded = append(embedded, inner)
			continue
		}

		if name == "" {
			name = f.Name
		}
		name = strings.ToLower(name)
		if _, nearer := fields[name]; f.IsExported() && !nearer {
			fields[name] = f.Type
		}
	}

	return embedded
}

type member struct {
	name  string
	value json.RawMessage
}

// mergeObject merges two JSON objects. field returns the type of a member, and whether the member is known.
// Members that are carried over come last.
func mergeObject(old, next json.RawMessage, field func(name string) (t reflect.Type, known bool)) json.RawMessage {
	before, ok := readMembers(old)
	after, okAfter := readMembers(next)
	if !ok || !okAfter {
		return next
	}

	at := make(map[string]int, len(after))
	for i, m := range after {
		at[m.name] = i
	}

	for _, m := range before {
		i, there := at[m.name]
		t, known := field(m.name)
		switch {
		case !known && !there:
			after = append(after, m)
		case known && there && holdsStructs(t):
			after[i].value = merge(m.value, after[i].value, t)
		case known && t.Kind() == reflect.Struct:
			// next omits the struct, since its known members are zero.
			m.value = merge(m.value, json.RawMessage("{}"), t)
			if string(m.value) != "{}" {
				after = append(after, m)
			}
		}
	}

	if len(after) == 0 {
		return next
	}
	return joinMembers(after)
}

// joinMembers returns a JSON object with the members.
func joinMembers(all []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// readMembers returns the members of a JSON object, in order. ok is false for any other value.
func readMembers(object json.RawMessage) (all []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}

	for d.More() {
		var m member
		token, err := d.Token()
		if err != nil {
			return nil, false
		}

		m.name, _ = token.(string)
		if err := d.Decode(&m.value); err != nil {
			return nil, false
		}
		all = append(all, m)
	}

	return all, true
}

// mergeList merges the elements of two JSON lists of structs, in the order of next. t is the type of an
// element.
func mergeList(old, next json.RawMessage, t reflect.Type) json.RawMessage {
	if !holdsStructs(t) {
		return next
	}
	var before, after []json.RawMessage
	if json.Unmarshal(old, &before) != nil || json.Unmarshal(next, &after) != nil {
		return next
	}
	if len(after) == 0 {
		return next
	}

	left := map[any][]json.RawMessage{}
	for _, element := range before {
		if id, ok := identify(element, t); ok {
			left[id] = append(left[id], element)
		}
	}

	for i, element := range after {
		id, ok := identify(element, t)
		if same := left[id]; ok && len(same) > 0 {
			after[i] = merge(same[0], element, t)
			left[id] = same[1:]
		}
	}

	// json.Marshal would escape < and > in the elements.
	return append(append([]byte{'['}, bytes.Join(rawBytes(after), []byte{','})...), ']')
}

func rawBytes(all []json.RawMessage) [][]byte {
	out := make([][]byte, len(all))
	for i, raw := range all {
		out[i] = raw
	}
	return out
}

// identify returns a value that distinguishes an element of a list from the others: its Identity or, if its
// type has none, all of its known members.
func identify(element json.RawMessage, t reflect.Type) (id any, ok bool) {
	if id, identified := identity(element, t); identified {
		return id, true
	}

	doc := reflect.New(t).Interface()
	if json.Unmarshal(element, doc) != nil {
		return nil, false
	}

	known := encode(doc)
	return string(known), known != nil
}

// isOther reports whether next has a different identity than old.
func isOther(old, next json.RawMessage, t reflect.Type) bool {
	before, ok := identity(old, t)
	after, okAfter := identity(next, t)
	return ok && okAfter && before != after
}

// identity returns the identity of a value; ok is false if its type is not Identified or it does not decode.
func identity(raw json.RawMessage, t reflect.Type) (id any, ok bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !reflect.PointerTo(t).Implements(reflect.TypeFor[Identified]()) {
		return nil, false
	}

	doc := reflect.New(t).Interface()
	if json.Unmarshal(raw, doc) != nil {
		return nil, false
	}

	return doc.(Identified).Identity(), true
}

// encode returns the value as JSON without escapes for HTML, as package keyspace does.
func encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return nil
	}

	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
