package access

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// changes returns the names of the members in which two JSON objects differ, including members that this
// binary does not know. ok is false if one of the values is not an object.
func changes(old, new []byte) (names []string, ok bool) {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(old, &before) != nil || json.Unmarshal(new, &after) != nil {
		return nil, false
	}
	if before == nil || after == nil { // one of the values is null
		return nil, false
	}

	for name := range before {
		if !isSame(before[name], after[name]) {
			names = append(names, name)
		}
	}
	for name := range after {
		if _, existed := before[name]; !existed {
			names = append(names, name)
		}
	}

	slices.Sort(names)
	return names, true
}

// withoutProviderSettings returns the record of an environment without its provider's settings, PROVIDER.KEY.
// These settings can name files and passwords of operators. The setting PROVIDER.confined stays, since agents
// read it to know whether they are confined. The result is nil if the record does not decode.
func withoutProviderSettings(value []byte) []byte {
	var record map[string]json.RawMessage
	if json.Unmarshal(value, &record) != nil {
		return nil
	}

	for member, data := range record {
		// Readers decode a name in any case.
		if !strings.EqualFold(member, "config") {
			continue
		}
		var config map[string]json.RawMessage
		if json.Unmarshal(data, &config) != nil {
			return nil
		}
		maps.DeleteFunc(config, func(key string, _ json.RawMessage) bool {
			return strings.Contains(key, ".") && !strings.HasSuffix(key, ".confined")
		})
		record[member] = encode(config)
	}

	return encode(record)
}

// encode encodes JSON that was decoded before.
func encode(value map[string]json.RawMessage) json.RawMessage {
	data, err := json.Marshal(value)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return data
}

// isSame reports whether two JSON values are the same. It compares numbers as texts, and ignores the order of
// members.
func isSame(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	av, aok := parseJSON(a)
	bv, bok := parseJSON(b)
	return aok && bok && reflect.DeepEqual(av, bv)
}

// parseJSON decodes the first JSON value in data, with numbers as [json.Number].
func parseJSON(data []byte) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err := d.Decode(&value)
	return value, err == nil
}

// hasDistinctMembers reports whether no object in a JSON value has the same member twice. If the value is a record, the
// names of its own members must differ in more than case, since encoding/json ignores case. A value that is not JSON
// has no members.
func hasDistinctMembers(value []byte, isRecord bool) bool {
	d := json.NewDecoder(bytes.NewReader(value))
	distinct, err := scanValue(d, isRecord)
	return distinct || err != nil
}

// scanValue skips one value, and reports whether each object in it has distinct members. With fold, if the value
// itself is an object, the names of its own members must differ in more than case. Objects inside the value
// need only different names.
func scanValue(d *json.Decoder, fold bool) (distinct bool, err error) {
	token, err := d.Token()
	if err != nil {
		return false, err
	}

	opened, isDelim := token.(json.Delim)
	if !isDelim {
		return true, nil
	}

	// The value is an object or a list.
	distinct = true
	seen := map[string]bool{}
	for d.More() {
		if opened == '{' {
			token, err := d.Token()
			if err != nil {
				return false, err
			}
			name, _ := token.(string)
			if fold {
				name = foldName(name)
			}
			distinct = distinct && !seen[name]
			seen[name] = true
		}

		inner, err := scanValue(d, false)
		if err != nil {
			return false, err
		}
		distinct = distinct && inner
	}

	_, err = d.Token() // the closing bracket
	return distinct, err
}

// foldName returns the same form for all names that encoding/json decodes into the same field.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		smallest := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			smallest = min(smallest, other)
		}
		return smallest
	}, name)
}

// changesOnly reports whether an existing record changes only in the named members.
func (a *ask) changesOnly(names ...string) bool {
	changed, ok := changes(a.old, a.new)
	return ok && !slices.ContainsFunc(changed, func(name string) bool { return !slices.Contains(names, name) })
}

// field returns a member of the old value and of the new one. A member that is absent is nil.
func (a *ask) field(name string) (before, after json.RawMessage) {
	var old, new map[string]json.RawMessage
	// A value that is absent or not an object has no members.
	_ = json.Unmarshal(a.old, &old)
	_ = json.Unmarshal(a.new, &new)
	return old[name], new[name]
}

// areKept reports whether the members of the record stay the same.
func (a *ask) areKept(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		before, after := a.field(name)
		return !isSame(before, after)
	})
}

// isKeptOr reports whether a member of the record stays the same, or is a text and may(before, after) returns
// true. An absent text is "".
func (a *ask) isKeptOr(name string, may func(before, after string) bool) bool {
	before, after := a.field(name)
	if isSame(before, after) {
		return true
	}

	var was, is string
	if !decodesInto(before, &was) || !decodesInto(after, &is) {
		return false
	}
	return may(was, is)
}

// decodesInto decodes a JSON value into target, and reports whether that succeeds. An absent value, which is
// nil, succeeds and leaves target unchanged.
func decodesInto(value []byte, target any) bool {
	return value == nil || json.Unmarshal(value, target) == nil
}

// areKeptOrCleared reports whether each of the members stays the same or is removed.
func (a *ask) areKeptOrCleared(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		before, after := a.field(name)
		return after != nil && !isSame(before, after)
	})
}

// isKeptOrReduced reports whether the member, which is an object, stays the same except for members that are
// removed from it.
func (a *ask) isKeptOrReduced(name string) bool {
	before, after := a.field(name)
	var was, is map[string]json.RawMessage
	if !decodesInto(before, &was) || !decodesInto(after, &is) {
		return false
	}

	for key, value := range is {
		if !isSame(was[key], value) {
			return false
		}
	}
	return true
}

// gives returns a rule that allows a counter to grow only together with the records that use its numbers. For
// each new number, the same commit must put a key that begins with prefix, and whose last part is the number.
func gives(prefix string) rule {
	return func(a *ask) bool {
		// An absent counter counts as 0.
		before, after, ok := counts(a.old, a.new)
		if !ok || after <= before {
			return false
		}
		// Each new number needs a write of its own. This also limits the loop below.
		if after > before+len(a.writes) {
			return false
		}

		used := map[string]bool{}
		for _, w := range a.writes {
			rest, isRecord := strings.CutPrefix(w.Key, prefix)
			if isRecord && !w.Delete {
				number := rest[strings.LastIndexByte(rest, '/')+1:]
				used[number] = true
			}
		}
		for n := before; n < after; n++ {
			if !used[strconv.Itoa(n)] {
				return false
			}
		}
		return true
	}
}

// isNext reports whether the same commit assigns the number from the counter.
func (a *ask) isNext(counter, number string) bool {
	before, after, ok := counts(a.get(counter), a.after(counter))
	n, err := strconv.Atoi(number)
	return ok && err == nil && before <= n && n < after
}

// counts decodes the old and new value of a counter. An absent counter is 0.
func counts(old, new []byte) (before, after int, ok bool) {
	if !decodesInto(old, &before) || !decodesInto(new, &after) {
		return 0, 0, false
	}
	return before, after, true
}

// added returns the elements that are in the list after, but not in the list before.
func added[T comparable](before, after []T) (elements []T) {
	for _, e := range after {
		if !slices.Contains(before, e) {
			elements = append(elements, e)
		}
	}
	return elements
}
