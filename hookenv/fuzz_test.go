package hookenv

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// arguments splits a fuzzer's text into argv.
func arguments(text string) []string { return strings.Split(text, "\x00") }

func FuzzFlags(f *testing.F) {
	for _, seed := range []string{
		"-r\x00db:0\x00user\x00mysql/0", "-rdb:0\x00--app=True\x00-", "--format=json\x00--\x00-x",
		"-r=\x00-", "--", "-", "--app=maybe", "-h", "--=", "-\xff", "-ah",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		argv := arguments(text)
		for _, tool := range Tools() {
			flags, _ := tool.declareFlags()
			if err := flags.parse(slices.Clone(argv)); err != nil {
				continue
			}
			// What is left stood in argv, in that order.
			rest := argv
			for _, arg := range flags.args {
				i := slices.Index(rest, arg)
				if i < 0 {
					t.Fatalf("%s %q: invented %q", tool.Name, argv, arg)
				}
				rest = rest[i+1:]
			}
			if i := slices.Index(argv, "--"); i < 0 && !flags.acceptUnknown && slices.ContainsFunc(flags.args, isOption) {
				t.Fatalf("%s %q: took an option for an argument: %q", tool.Name, argv, flags.args)
			}
		}
	})
}

func isOption(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

func FuzzReference(f *testing.F) {
	for _, seed := range []string{"db", "relation-42", "42", "db:42", "-1", ":0", "db:", "db:0:0", "", "relation-", "relation--1", "99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		ref, ok := parseReference(value)
		switch {
		case !ok && (ref != reference{}):
			t.Fatalf("%q is none, but gave %+v", value, ref)
		case ok && ref.hasNumber && ref.id < -1, ok && !ref.hasNumber && (ref.name != value || ref.id != 0):
			t.Fatalf("%q gave %+v", value, ref)
		case ok && ref.name == "" && !ref.hasNumber:
			t.Fatalf("%q names nothing", value)
		}
	})
}

func FuzzDictionary(f *testing.F) {
	for _, seed := range []string{"a: 1\nb: null\n", `{"a":"b"}`, "- 1", "a: {b: 1}", "a: &x 1\nb: *x", "a: 1\n---\nb: 2", "? [a]\n: b", "<<: {a: 1}", "a: !!binary aGk="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		changes, err := parseDictionary([]byte(text))
		for key, value := range changes {
			if err == nil && (key == "" || !utf8.ValidString(key) || value != nil && (*value == "" || !utf8.ValidString(*value))) {
				t.Fatalf("%q: key %q has a value that is no setting", text, key)
			}
		}
	})
}

// What is printed as YAML is read back as the same text.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{"", "42", "true", "null", "~", "0x10", "08", "1e5", "2001-01-01", "a: b", "a #b", " x", "x ", "\na", "a\n", "a\n\n", "a\tb\n", "é", "😀", "\u2028", "a\r\nb", "- x", "<<", "=", "\ufeff", "\x7f", "#", "\n", "\u202e", "a\n\u200f"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		if checkText(key, value) != nil {
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
