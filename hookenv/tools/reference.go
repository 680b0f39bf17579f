package tools

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
	if id, isNumber := parseRelationNumber(strings.TrimPrefix(value, classicPrefix)); isNumber {
		return reference{id: id, hasNumber: true}, true
	}
	colon := strings.LastIndexByte(value, ':')
	if colon < 0 {
		return reference{name: value}, value != ""
	}
	id, isNumber := parseRelationNumber(value[colon+1:])
	if !isNumber {
		return reference{}, false
	}
	return reference{name: value[:colon], id: id, hasNumber: true}, true
}

// RelationID reads a relation's id in any of its forms: "relation-42", "42" and "db:42".
func RelationID(value string) (id int, ok bool) {
	ref, ok := parseReference(value)
	return ref.id, ok && ref.hasNumber && ref.id >= 0
}

func parseRelationNumber(text string) (id int, ok bool) {
	n, err := strconv.Atoi(text)
	return max(n, -1), err == nil
}
