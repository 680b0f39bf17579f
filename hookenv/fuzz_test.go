package hookenv

import (
	"bytes"
	"maps"
	"testing"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

func FuzzDictionary(f *testing.F) {
	for _, seed := range []string{"a: 1\nb: null\n", `{"a":"b"}`, "- 1", "a: {b: 1}", "a: &x 1\nb: *x", "a: 1\n---\nb: 2", "? [a]\n: b", "<<: {a: 1}", "a: !!binary aGk="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := ParseDictionary([]byte(text))
		for key, value := range changes {
			if err == nil && (key == "" || !utf8.ValidString(key) || value != nil && (*value == "" || !utf8.ValidString(*value))) {
				t.Fatalf("%q: key %q has a value that is no setting", text, key)
			}
		}
	})
}

// FuzzYAML checks that a text that is printed as YAML and parsed again is the same text.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{"", "42", "true", "null", "~", "0x10", "08", "1e5", "2001-01-01", "a: b", "a #b", " x", "x ", "\na", "a\n", "a\n\n", "a\tb\n", "é", "😀", "\u2028", "a\r\nb", "- x", "<<", "=", "\ufeff", "\x7f", "#", "\n", "\u202e", "a\n\u200f"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		if CheckText(key, value) != nil {
			t.Skip()
		}
		want := map[string]string{key: value, "z": value}
		text, err := renderYAML(want)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexFunc(text, isHarmful) >= 0 {
			t.Fatalf("%q was printed as %q", want, text)
		}
		got := map[string]string{}
		if err := yaml.Unmarshal(text, &got); err != nil || !maps.Equal(got, want) {
			t.Fatalf("%q was printed as %q and read back as %q: %v", want, text, got, err)
		}
	})
}
