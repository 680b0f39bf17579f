package access

import (
	"strconv"
	"strings"
)

// vars has what a pattern has found in a key, by the name in its braces.
type vars map[string]string

// segment is what a pattern wants between two slashes: a literal, and after it what a variable takes.
type segment struct {
	literal string
	name    string // of the variable; empty: there is none
	kind    kind
}

// kind is which texts a variable takes.
type kind int

const (
	kindWord   kind = iota // anything without a slash
	kindNumber             // digits, as numbers are written
	kindPadded             // digits, with zeros before them
	kindNamed              // NAME/NUMBER: a unit or a storage
	kindTag                // NAME-NUMBER, for the unit NAME/NUMBER
	kindRest               // all that is left, slashes included
)

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

// parse reads a pattern: "units/{unit}/ports". One that ends with a slash is of prefixes.
func parse(pattern string) (all []segment) {
	for part := range strings.SplitSeq(pattern, "/") {
		literal, name, _ := strings.Cut(strings.TrimSuffix(part, "}"), "{")
		all = append(all, segment{literal, name, kindOf(name)})
	}
	return all
}

func match(pattern []segment, parts []string) (vars, bool) {
	found := vars{}

	for _, s := range pattern {
		if len(parts) == 0 {
			return nil, false
		}
		text, ok := strings.CutPrefix(parts[0], s.literal)
		if !ok || s.name == "" && text != "" || s.name != "" && text == "" {
			return nil, false
		}

		took := 1
		switch {
		case s.name == "":
		case s.kind == kindRest:
			text, took = strings.Join(parts, "/"), len(parts)
		case s.kind == kindNamed:
			if len(parts) < 2 || !isNumber(parts[1]) {
				return nil, false
			}
			text, took = text+"/"+parts[1], 2
		case s.kind == kindTag:
			i := strings.LastIndexByte(text, '-')
			if i < 1 || !isNumber(text[i+1:]) {
				return nil, false
			}
			text = text[:i] + "/" + text[i+1:]
		case s.kind == kindNumber && !isNumber(text), s.kind == kindPadded && strings.Trim(text, "0123456789") != "":
			return nil, false
		}

		if s.name != "" {
			found[s.name] = text
		}
		parts = parts[took:]
	}

	return found, len(parts) == 0
}

// isNumber is false for 07: a number is written in one way.
func isNumber(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n >= 0 && strconv.Itoa(n) == text
}

// serviceOf returns the service of a unit.
func serviceOf(unit string) string {
	service, _, _ := strings.Cut(unit, "/")
	return service
}
