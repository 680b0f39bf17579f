package access

import (
	"strconv"
	"strings"
)

// vars has the values of a pattern's variables in a key, by their names.
type vars map[string]string

// segment is a part of a pattern between two slashes: a literal, followed by a variable.
type segment struct {
	literal string
	name    string // the variable's name; empty if there is no variable
	kind    kind
}

// kind is the form of the texts that a variable matches.
type kind int

const (
	kindWord   kind = iota // any text without a slash
	kindNumber             // a number without leading zeros
	kindPadded             // digits, possibly with leading zeros
	kindNamed              // NAME/NUMBER, the name of a unit or storage
	kindTag                // NAME-NUMBER, which matches as the unit NAME/NUMBER
	kindRest               // the rest of the key, with its slashes
)

// kindOf returns the kind of the variable with that name.
func kindOf(name string) kind {
	switch name {
	case "relation", "n", "revision", "slot":
		return kindNumber
	case "seq", "chunk":
		return kindPadded
	case "unit", "storage", "member":
		return kindNamed
	case "tag":
		return kindTag
	case "charm", "rest":
		return kindRest
	}
	return kindWord
}

// parse parses a pattern such as "units/{unit}/ports". The last segment of a pattern that ends with a slash is
// empty, so the pattern matches prefixes that end with a slash.
func parse(pattern string) (segments []segment) {
	for part := range strings.SplitSeq(pattern, "/") {
		literal, name, _ := strings.Cut(strings.TrimSuffix(part, "}"), "{")
		segments = append(segments, segment{literal, name, kindOf(name)})
	}
	return segments
}

// match matches a key, split at its slashes, and returns the values of the pattern's variables. It returns
// false if the key does not match.
func match(pattern []segment, parts []string) (vars, bool) {
	found := vars{}

	for _, s := range pattern {
		if len(parts) == 0 {
			return nil, false
		}

		// A variable matches at least one character.
		text, ok := strings.CutPrefix(parts[0], s.literal)
		hasVariable := s.name != ""
		hasText := text != ""
		if !ok || hasVariable != hasText {
			return nil, false
		}
		if !hasVariable {
			parts = parts[1:]
			continue
		}

		value, used, ok := s.kind.take(text, parts)
		if !ok {
			return nil, false
		}
		found[s.name] = value
		parts = parts[used:]
	}

	return found, len(parts) == 0
}

// take returns the value of a variable of this kind at the beginning of the parts, and how many parts it uses.
// text is the first part without the literal before the variable. ok is false if the parts do not begin with a
// value of this kind.
func (k kind) take(text string, parts []string) (value string, used int, ok bool) {
	switch k {
	case kindRest:
		// In all patterns, such a variable begins its part, so no literal is in the way.
		return strings.Join(parts, "/"), len(parts), true

	case kindNamed:
		if len(parts) < 2 || !isNumber(parts[1]) {
			return "", 0, false
		}
		return text + "/" + parts[1], 2, true

	case kindTag:
		i := strings.LastIndexByte(text, '-')
		if i < 1 || !isNumber(text[i+1:]) {
			return "", 0, false
		}
		return text[:i] + "/" + text[i+1:], 1, true

	case kindNumber:
		return text, 1, isNumber(text)

	case kindPadded:
		return text, 1, strings.Trim(text, "0123456789") == ""
	}

	// A word can be any text.
	return text, 1, true
}

// isNumber reports whether a text is a number without leading zeros, so that each number has only one form.
func isNumber(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0 && strconv.Itoa(n) == text
}

// serviceOf returns the service of a unit, or "" for "".
func serviceOf(unit string) string {
	service, _, _ := strings.Cut(unit, "/")
	return service
}
