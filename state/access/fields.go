package access

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// changes returns the members of two JSON objects that differ, whether this binary knows them or not; ok is
// false if one is no object.
func changes(old, new []byte) (names []string, ok bool) {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(old, &a) != nil || json.Unmarshal(new, &b) != nil || a == nil || b == nil {
		return nil, false
	}

	for name := range a {
		if !isSame(a[name], b[name]) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}

	slices.Sort(names)
	return names, true
}

// isSame compares numbers as they are written, and objects whatever the order of their members is.
func isSame(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	av, aok := parseJSON(a)
	bv, bok := parseJSON(b)
	return aok && bok && reflect.DeepEqual(av, bv)
}

func parseJSON(data []byte) (value any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err := d.Decode(&value)
	return value, err == nil
}

// isPlain reports whether no object of a JSON value names a member twice. Of a record's own members, names that differ in
// case only are the same: decoding takes them for one field. What is no JSON is plain.
func isPlain(value []byte, record bool) bool {
	d := json.NewDecoder(bytes.NewReader(value))
	plain, err := scanValue(d, record)
	return plain || err != nil
}

// scanValue reads one value. plain is false if an object in it names a member twice; with fold, the case of
// the outermost object's names does not count.
func scanValue(d *json.Decoder, fold bool) (plain bool, err error) {
	token, err := d.Token()
	if err != nil {
		return false, err
	}

	opened, isDelim := token.(json.Delim)
	if !isDelim {
		return true, nil
	}

	plain = true
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
			plain = plain && !seen[name]
			seen[name] = true
		}

		inner, err := scanValue(d, false)
		if err != nil {
			return false, err
		}
		plain = plain && inner
	}

	_, err = d.Token() // the closing one
	return plain, err
}

// foldName returns one form of all names that decoding takes for the same field.
func foldName(name string) string {
	return strings.Map(func(r rune) rune {
		smallest := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			smallest = min(smallest, other)
		}
		return smallest
	}, name)
}

// keeps reports whether a record that was there is changed in the named members only.
func (a *ask) keeps(but ...string) bool {
	changed, ok := changes(a.old, a.new)
	return ok && !slices.ContainsFunc(changed, func(name string) bool { return !slices.Contains(but, name) })
}

// field is a member of the value before and of the one after; nil where it is absent.
func (a *ask) field(name string) (before, after json.RawMessage) {
	var old, new map[string]json.RawMessage
	_ = json.Unmarshal(a.old, &old)
	_ = json.Unmarshal(a.new, &new)
	return old[name], new[name]
}

// isKeptOr reports whether a member of the record stays as it is, or becomes a text for which may returns true. A
// text that is absent is "".
func (a *ask) isKeptOr(name string, may func(before, after string) bool) bool {
	before, after := a.field(name)
	if isSame(before, after) {
		return true
	}

	var was, is string
	if before != nil && json.Unmarshal(before, &was) != nil || after != nil && json.Unmarshal(after, &is) != nil {
		return false
	}
	return may(was, is)
}

// isKeptOrCleared reports whether each of the members stays as it is, or goes.
func (a *ask) isKeptOrCleared(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		before, after := a.field(name)
		return after != nil && !isSame(before, after)
	})
}

// loses reports whether the member, an object, has lost members at most.
func (a *ask) loses(name string) bool {
	before, after := a.field(name)
	var was, is map[string]json.RawMessage
	if before != nil && json.Unmarshal(before, &was) != nil || after != nil && json.Unmarshal(after, &is) != nil {
		return false
	}

	for key, value := range is {
		if !isSame(was[key], value) {
			return false
		}
	}
	return true
}

// gives is for a counter that grows with what gets its numbers: each number is that of a key with the prefix which the
// same commit puts.
func gives(prefix string) rule {
	return func(a *ask) bool {
		before, after, ok := counts(a.old, a.new)
		if !ok || after <= before || after > before+len(a.writes) {
			return false
		}

		given := map[string]bool{}
		for _, w := range a.writes {
			if rest, ok := strings.CutPrefix(w.Key, prefix); ok && !w.Delete {
				given[rest[strings.LastIndexByte(rest, '/')+1:]] = true
			}
		}
		for n := before; n < after; n++ {
			if !given[strconv.Itoa(n)] {
				return false
			}
		}
		return true
	}
}

// isNext reports whether the counter gives that number in the same commit.
func (a *ask) isNext(counter, number string) bool {
	before, after, ok := counts(a.get(counter), a.after(counter))
	n, err := strconv.Atoi(number)
	return ok && err == nil && before <= n && n < after
}

// counts reads a counter before and after; one that is absent is 0.
func counts(old, new []byte) (before, after int, ok bool) {
	if old != nil && json.Unmarshal(old, &before) != nil || new != nil && json.Unmarshal(new, &after) != nil {
		return 0, 0, false
	}
	return before, after, true
}

// added returns what the second list has and the first has not.
func added(before, after []string) (all []string) {
	for _, one := range after {
		if !slices.Contains(before, one) {
			all = append(all, one)
		}
	}
	return all
}
