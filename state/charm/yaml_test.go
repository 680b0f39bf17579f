package charm

import (
	"fmt"
	"strings"
	"testing"
)

// keys returns a dictionary of n keys with the same value.
func keys(n int, value string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  k%s: %s\n", letters(i), value)
	}
	return b.String()
}

// letters writes a number with letters, because names may contain them.
func letters(n int) string {
	return string(rune('a'+n/676%26)) + string(rune('a'+n/26%26)) + string(rune('a'+n%26))
}

func TestMetadataThatIsRefusedInPlainWords(t *testing.T) {
	deep := strings.Repeat("{a: ", 20_000) + "1" + strings.Repeat("}", 20_000)
	for name, c := range map[string]struct{ text, complaint string }{
		"list":             {"- a\n", "line 1: a list is not a dictionary"},
		"text":             {"hello", `line 1: "hello" is not a dictionary`},
		"name is a list":   {"name: [a]\n", "line 1: a list is not a string"},
		"limit is a text":  {tiny + "requires: {a: {interface: x, limit: abc}}\n", `line 2: "abc" is not an int`},
		"flag is a text":   {tiny + "subordinate: perhaps\n", `line 2: "perhaps" is not a boolean (true or false)`},
		"second document":  {tiny + "---\nname: other\n", "line 2: a second document begins here; want only one document"},
		"second is broken": {tiny + "---\n[\n", "did not find expected node content"},
		"too many keys":    {tiny + "requires:\n" + keys(maxKeys+1, "x"), "line 3: a dictionary has 5001 keys; the limit is 5000"},
		"many in a list":   {tiny + "x:\n- - " + strings.TrimSpace(strings.ReplaceAll(keys(maxKeys+1, "1"), "  k", "    k")) + "\n", "a dictionary has 5001 keys"},
		"deep":             {tiny + "x: " + deep + "\n", "exceeded max depth"},
		"merged twice":     {"a: &a {x: y}\n" + tiny + "requires:\n  <<: *a\n  <<: *a\n", `mapping key "<<" already defined`},
		"not UTF-8":        {tiny + "maintainer: \xe9\n", "UTF-8"},
		"NUL":              {tiny + "maintainer: a\x00b\n", "control characters are not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseMeta([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.complaint) {
				t.Errorf("%s: got %v, want an error with %q", name, err, c.complaint)
			}
			if err != nil && (strings.Contains(err.Error(), "\n") || len(err.Error()) > maxErrorText+10) {
				t.Errorf("%s: the error is no line: %q", name, err)
			}
		})
	}
}

func TestMetadataThatIsTaken(t *testing.T) {
	for name, text := range map[string]string{
		"document marks": "---\n" + tiny + "...\n",
		"empty second":   tiny + "---\n",
		"key twice":      tiny + tiny,
		"many relations": tiny + "requires:\n" + keys(1000, "x"),
		"unused aliases": strings.ReplaceAll(bomb(), "extra-bindings: *a9\nseries: *a9\n", ""),
	} {
		if _, err := ParseMeta([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
