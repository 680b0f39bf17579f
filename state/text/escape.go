// Package text makes text fit to be shown and logged: it cuts the output of programs into lines,
// escapes control characters, and hides secrets.
//
// It does no I/O and imports nothing of bijou.
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

// EscapeJSON returns the same JSON without such characters in its strings: they are escaped.
func EscapeJSON(json string) string {
	return escape(json, func(r rune) string { return fmt.Sprintf(`\u%04x`, r) })
}

// LosesBytes reports whether json.Marshal has written U+FFFD for bytes that are not UTF-8. It writes that
// as an escape, unlike a character U+FFFD of the text.
func LosesBytes(encoded []byte) bool {
	for i := 0; i < len(encoded); i++ {
		if encoded[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(encoded[i:], []byte(`\ufffd`)) {
			return true
		}
		i++ // what is escaped may be a backslash
	}

	return false
}

// escape returns the text with each harmful rune replaced by what write returns for it.
func escape(text string, write func(rune) string) string {
	if strings.IndexFunc(text, isHarmful) < 0 {
		return text
	}

	var b strings.Builder
	for _, r := range text {
		if isHarmful(r) {
			b.WriteString(write(r))
		} else {
			b.WriteRune(r)
		}
	}

	return b.String()
}

// EscapeLines returns the lines of a text, each escaped by [Escape]. A caller can put its own words before
// each line, so that no line of the text passes for a line of somebody else. It drops line ends at the end
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

// isHarmful reports whether a terminal may obey the character instead of showing it.
func isHarmful(r rune) bool {
	return unicode.IsControl(r) && r != '\t' || r == '\u2028' || r == '\u2029' || // line and paragraph separators
		unicode.Is(unicode.Bidi_Control, r)
}

// MarshalYAML returns the value as YAML without such characters in its texts: they are
// escapes in double-quoted scalars.
func MarshalYAML(value any) ([]byte, error) {
	text, err := yaml.Marshal(value)
	if err != nil || strings.IndexFunc(string(text), isHarmfulInYAML) < 0 {
		return text, err
	}

	var n yaml.Node
	if err := n.Encode(value); err != nil {
		return nil, err
	}

	quoteHarmful(&n)
	if text, err = yaml.Marshal(&n); err != nil {
		return nil, err
	}

	return []byte(escape(string(text), func(r rune) string {
		if r == '\n' {
			return "\n"
		}
		return fmt.Sprintf(`\u%04X`, r)
	})), nil
}

// isHarmfulInYAML reports whether a rune must be escaped in YAML. The ends of YAML's own lines need no
// escape.
func isHarmfulInYAML(r rune) bool { return isHarmful(r) && r != '\n' }

func quoteHarmful(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && strings.IndexFunc(n.Value, isHarmfulInYAML) >= 0 {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, member := range n.Content {
		quoteHarmful(member)
	}
}
