// Package carry keeps unknown members of a record's JSON when an older binary rewrites the record. A newer
// binary has written these members. The older binary must not drop them, since the environment may be
// upgraded again. So package carry copies them to the JSON that replaces the record.
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

// Identified is implemented by records, and by parts of records, that can be replaced by a record of a
// different entity. For example, an update of boot servers replaces the previous update at the same key, and
// attempts follow each other in a list. Over does not carry members over to a record with a different
// identity.
type Identified interface {
	// Identity returns a comparable value that distinguishes the record from its successors.
	Identity() any
}

// Over returns next with additional members from old. next is the JSON of doc, and replaces the JSON old.
// Over adds the members of old for which doc's type has no field. So a record keeps the members that newer
// binaries have written.
//
// Over works in structs, in the entries of maps, and in lists. It matches an element of a list with the old
// element of the same Identity. If the element's type does not have an Identity, Over matches it with an old
// element whose known members are all the same. Over changes nothing in values of type any, in types with their
// own encoding of JSON or text, and in values with a different Identity than the old value.
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

// Same reports whether two JSON values are equal except for the order of objects' members. It may report
// false for equal values that differ in white space or in escapes.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}

	// A different order changes neither the length nor the sum of the bytes.
	if len(a) != len(b) || sumBytes(a) != sumBytes(b) {
		return false
	}

	valueA, okA := parse(a)
	valueB, okB := parse(b)
	return okA && okB && reflect.DeepEqual(valueA, valueB)
}

// sumBytes returns a checksum that does not depend on the order of the bytes.
func sumBytes(data []byte) (sum int) {
	for _, b := range data {
		sum += int(b) * int(b)
	}
	return sum
}

// parse decodes JSON of any type. It keeps numbers as they are written.
func parse(data []byte) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err := d.Decode(&value)
	return value, err == nil
}

// holdsStructs reports whether the type is a struct or contains structs as elements, so that its JSON may have
// unknown members.
func holdsStructs(t reflect.Type) bool {
	if t == nil {
		return false // the type of a nil document
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

// merge returns next completed with the unknown members of old. t is the type of both values. It returns next
// unchanged if the type has its own JSON, or if old and next describe different things.
func merge(old, next json.RawMessage, t reflect.Type) json.RawMessage {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if hasOwnJSON(t) || hasOtherIdentity(old, next, t) {
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
		// mergeObject restores the unknown members of a missing struct, but not of a missing pointer. An
		// entry that next lacks was removed, so its type here must be a pointer.
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
	for _, codec := range []reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if p.Implements(codec) {
			return true
		}
	}

	return false
}

// addFields adds the types of t's fields to fields, by JSON name in lower case, since encoding/json ignores
// case. It adds the fields of embedded structs level by level, since a field hides fields of the same name in
// deeper levels.
func addFields(fields map[string]reflect.Type, t reflect.Type) {
	for level := []reflect.Type{t}; len(level) > 0; {
		var embedded []reflect.Type
		for _, structType := range level {
			embedded = append(embedded, addOwnFields(fields, structType)...)
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
		_, isHidden := fields[name] // by a field of the same or an upper level
		if f.IsExported() && !isHidden {
			fields[name] = f.Type
		}
	}

	return embedded
}

// member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// mergeObject returns the JSON object next completed with the unknown members of the JSON object old. field
// returns the type of a member, and whether the member is known. Members that are carried over come last. If
// old or next is not an object, mergeObject returns next unchanged.
func mergeObject(old, next json.RawMessage, field func(name string) (t reflect.Type, known bool)) json.RawMessage {
	oldMembers, okOld := readMembers(old)
	members, okNext := readMembers(next)
	if !okOld || !okNext {
		return next
	}

	indexInNext := make(map[string]int, len(members))
	for i, m := range members {
		indexInNext[m.name] = i
	}

	for _, m := range oldMembers {
		i, inNext := indexInNext[m.name]
		t, known := field(m.name)
		// In all other cases the program has written or removed the member, and next stays as it is.
		switch {
		case !known && !inNext:
			members = append(members, m)
		case known && inNext && holdsStructs(t):
			members[i].value = merge(m.value, members[i].value, t)
		case known && t.Kind() == reflect.Struct:
			// next omits the struct, since its known members are zero.
			m.value = merge(m.value, json.RawMessage("{}"), t)
			if string(m.value) != "{}" {
				members = append(members, m)
			}
		}
	}

	if len(members) == 0 {
		return next // {}
	}
	return joinMembers(members)
}

// joinMembers returns a JSON object with the members.
func joinMembers(members []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range members {
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
func readMembers(object json.RawMessage) (members []member, ok bool) {
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

		m.name, _ = token.(string) // the decoder returns only strings as names
		if err := d.Decode(&m.value); err != nil {
			return nil, false
		}
		members = append(members, m)
	}

	return members, true
}

// mergeList returns the JSON list next, in which each element is merged with the old element of the same
// identity. t is the type of an element. Several elements with the same identity are matched in order. If old
// or next is not a list, or elements cannot have unknown members, mergeList returns next unchanged.
func mergeList(old, next json.RawMessage, t reflect.Type) json.RawMessage {
	if !holdsStructs(t) {
		return next
	}
	var oldElements, elements []json.RawMessage
	if json.Unmarshal(old, &oldElements) != nil || json.Unmarshal(next, &elements) != nil {
		return next
	}
	if len(elements) == 0 {
		return next // [] or null
	}

	unmatched := map[any][]json.RawMessage{} // old elements, by identity
	for _, element := range oldElements {
		if id, ok := identify(element, t); ok {
			unmatched[id] = append(unmatched[id], element)
		}
	}

	for i, element := range elements {
		id, ok := identify(element, t)
		candidates := unmatched[id]
		if ok && len(candidates) > 0 {
			elements[i] = merge(candidates[0], element, t)
			unmatched[id] = candidates[1:]
		}
	}

	return joinElements(elements)
}

// joinElements returns a JSON list with the elements. Unlike json.Marshal, it does not escape < and > in the
// elements.
func joinElements(elements []json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, element := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(element)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// identify returns the value by which mergeList recognizes an element: its Identity or, if its type does not
// have one, all of its known members as JSON. It returns ok false if the element does not decode, or
// if those members do not encode.
func identify(element json.RawMessage, t reflect.Type) (id any, ok bool) {
	if id, isDeclared := declaredIdentity(element, t); isDeclared {
		return id, true
	}

	doc := reflect.New(t).Interface()
	if json.Unmarshal(element, doc) != nil {
		return nil, false
	}

	known := encode(doc)
	return string(known), known != nil
}

// hasOtherIdentity reports whether old and next have identities, and these are different.
func hasOtherIdentity(old, next json.RawMessage, t reflect.Type) bool {
	oldID, okOld := declaredIdentity(old, t)
	nextID, okNext := declaredIdentity(next, t)
	return okOld && okNext && oldID != nextID
}

// declaredIdentity returns the Identity of a value. It returns ok false if the type is not Identified, or if
// the value does not decode.
func declaredIdentity(raw json.RawMessage, t reflect.Type) (id any, ok bool) {
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

// encode returns the value as JSON without escapes for HTML, as package keyspace does. It returns nil if the
// value cannot be encoded.
func encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return nil
	}

	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
