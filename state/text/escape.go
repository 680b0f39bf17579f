// Package text prepares text for output and logs. It splits the output of programs into lines, escapes
// control characters, and hides secrets.
//
// It does no I/O.
package text

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"
)

// Escape returns the text with Go's escapes for control characters, and for characters that break lines or
// change the direction of text. It keeps tabs.
func Escape(text string) string {
	return escape(text, func(r rune) string { return strings.Trim(strconv.QuoteRuneToASCII(r), "'") })
}

// EscapeJSON returns JSON in which the characters that [Escape] escapes are replaced by JSON's escapes.
func EscapeJSON(json string) string {
	return escape(json, func(r rune) string { return fmt.Sprintf(`\u%04x`, r) })
}

// LosesBytes reports whether json.Marshal has replaced bytes that are not UTF-8. encoded is the result of
// json.Marshal, which writes the escape \ufffd for such bytes, but writes a character U+FFFD in the text
// unescaped.
func LosesBytes(encoded []byte) bool {
	for i := 0; i < len(encoded); i++ {
		if encoded[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(encoded[i:], []byte(`\ufffd`)) {
			return true
		}
		i++ // skip the escaped character, which can be a backslash
	}

	return false
}

// escape returns the text with each harmful rune replaced by its escape, which escapeRune returns.
func escape(text string, escapeRune func(rune) string) string {
	if strings.IndexFunc(text, isHarmful) < 0 {
		return text
	}

	var b strings.Builder
	for _, r := range text {
		if isHarmful(r) {
			b.WriteString(escapeRune(r))
		} else {
			b.WriteRune(r)
		}
	}

	return b.String()
}

// EscapeLines returns the lines of a text, each escaped by [Escape]. A caller can print a prefix before each
// line, so that no part of the text looks like a line from the caller. EscapeLines drops line ends at the end
// of the text, and returns at least one line.
func EscapeLines(text string) []string {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	for i, line := range lines {
		lines[i] = Escape(strings.TrimSuffix(line, "\r"))
	}
	return lines
}

// FirstLine returns the text up to its first newline.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// isHarmful reports whether a terminal can interpret the character instead of showing it.
func isHarmful(r rune) bool {
	isSeparator := r == '\u2028' || r == '\u2029' // of lines and paragraphs
	return isSeparator || unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// MarshalYAML returns the value as YAML. Texts with characters that [Escape] escapes become double-quoted
// scalars with YAML's escapes.
func MarshalYAML(value any) ([]byte, error) {
	text, err := yaml.Marshal(value)
	if err != nil {
		return text, err
	}
	if strings.IndexFunc(string(text), isHarmfulInYAML) < 0 {
		return text, nil
	}

	var n yaml.Node
	if err := n.Encode(value); err != nil {
		return nil, err
	}

	quoteHarmful(&n)
	text, err = yaml.Marshal(&n)
	if err != nil {
		return nil, err
	}

	// In quoted scalars, yaml.Marshal may leave some of the harmful characters unescaped.
	return []byte(escape(string(text), func(r rune) string {
		if r == '\n' {
			return "\n" // the end of a line of YAML
		}
		return fmt.Sprintf(`\u%04X`, r)
	})), nil
}

// isHarmfulInYAML reports whether a rune must be escaped in YAML. Newlines need no escape here, since YAML
// itself escapes them.
func isHarmfulInYAML(r rune) bool { return isHarmful(r) && r != '\n' }

// quoteHarmful makes texts with harmful characters double-quoted, since other scalars cannot have escapes.
func quoteHarmful(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && strings.IndexFunc(n.Value, isHarmfulInYAML) >= 0 {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, member := range n.Content {
		quoteHarmful(member)
	}
}
