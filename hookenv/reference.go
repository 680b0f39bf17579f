package hookenv

import (
	"strconv"
	"strings"
)

// classicPrefix begins a relation id as Python Juju writes it: "relation-42".
const classicPrefix = "relation-"

// reference is a parsed VALUE of -r or --relation-id: a relation's name, its
// number, or both.
type reference struct {
	name      string
	id        int
	hasNumber bool
}

// parseReference reads "db", "relation-42", "42" and "db:42"; the number stands behind the last
// colon. ok is false for what can be none of them. A number that no relation can have is one: id is
// -1 then.
func parseReference(value string) (ref reference, ok bool) {
	if number, found := strings.CutPrefix(value, classicPrefix); found && isInteger(number) {
		return reference{id: relationNumber(number), hasNumber: true}, true
	}
	name, number := "", value
	if i := strings.LastIndexByte(value, ':'); i >= 0 {
		name, number = value[:i], value[i+1:]
		if !isInteger(number) {
			return reference{}, false
		}
	}
	if isInteger(number) {
		return reference{name: name, id: relationNumber(number), hasNumber: true}, true
	}
	return reference{name: value}, value != ""
}

// RelationID reads a relation's id in any of its forms: "relation-42", "42" and "db:42".
func RelationID(value string) (id int, ok bool) {
	ref, ok := parseReference(value)
	return ref.id, ok && ref.hasNumber && ref.id >= 0
}

// isInteger allows a sign.
func isInteger(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

func relationNumber(text string) int {
	n, _ := strconv.Atoi(text) // isInteger has said that it is one
	return max(n, -1)
}
