package hookenv

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// renderShell prints for eval: a dictionary as KEY='value' lines, sorted; everything else as smart
// does.
func renderShell(value any) ([]byte, error) {
	dictionary := map[string]any{}
	switch v := value.(type) {
	case map[string]string:
		for key, text := range v {
			dictionary[key] = text
		}
	case map[string]any:
		dictionary = v
	case int64, float64, int, pythonFloat:
		return fmt.Appendln(nil, v), nil
	default:
		return renderSmart(value)
	}
	var b bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(dictionary)) {
		text, err := shellText(dictionary[key])
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "%s=%s\n", variableName(key), quoteWord(text))
	}
	return b.Bytes(), nil
}

// What has parts of its own is JSON.
func shellText(value any) (string, error) {
	switch v := value.(type) {
	case map[string]any, map[string]string, []any:
		text, err := renderJSON(v)
		return strings.TrimSuffix(string(text), "\n"), err
	case string:
		return v, nil
	}
	text, err := renderShell(value)
	return strings.TrimSuffix(string(text), "\n"), err
}

// variableName makes a name that a shell can assign to: the other end chooses the keys, and they
// must not become commands under eval.
func variableName(key string) string {
	name := strings.Map(func(r rune) rune {
		if r <= unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) || r == '_' {
			return r
		}
		return '_'
	}, key)
	if name == "" || unicode.IsDigit(rune(name[0])) {
		return "_" + name
	}
	return name
}

func quoteWord(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
