package hookenv

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJSONIsReadAsJSON(t *testing.T) {
	for file, want := range map[string]string{
		`{"a":"\ud83d\ude00"}`:          "\U0001F600",
		"{\"a\":\"x\u0085y\"}":          "x\u0085y",
		"{\"a\":\"x \u2028y\"}":         "x \u2028y",
		"{\"a\":\"x\x7fy\"}":            "x\x7fy",
		` { "a" : "tab\tquote\"" } `:    "tab\tquote\"",
		`{"a":"\\ud83d"}`:               `\ud83d`,
		`{"a":"\\\ud83d\ude00"}`:        "\\\U0001F600",
		`{"a":1.50}`:                    "1.50",
		`{"a":12345678901234567890123}`: "12345678901234567890123",
		`{"a":true}`:                    "true",
		`{"a":1e999999}`:                "1e999999",
		`{"a": {"b": [1, "c"]} }`:       `{"b": [1, "c"]}`,
		`{"a":[]}`:                      "[]",
		`{a: yaml still}`:               "yaml still",
	} {
		t.Run(file, func(t *testing.T) {
			got, err := ParseDictionary([]byte(file))
			if err != nil {
				t.Error(err)
				return
			}
			if diff := cmp.Diff(map[string]*string{"a": &want}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
	if got, err := ParseDictionary([]byte(`{"a":null,"b":""}`)); err != nil || len(got) != 2 || got["a"] != nil || got["b"] != nil {
		t.Errorf("null and an empty string became %v, %v; want both deleted", got, err)
	}
	if _, err := ParseDictionary([]byte("a: {b: 1}")); err == nil {
		t.Error("a nested dictionary of YAML is a setting")
	}
}

// TestFaultsAreOfTheLanguageThatWasWritten checks that errors in JSON mention JSON, and that errors in YAML
// mention YAML.
func TestFaultsAreOfTheLanguageThatWasWritten(t *testing.T) {
	for file, want := range map[string]string{
		"{\"a\": 1,\n\"b\" \"c\"}": `json: invalid character '"' after object key`,
		`{"a": 1`:                  "json: unexpected end of JSON input",
		"[\"a\"]\n":                "json: expected a dictionary of settings",
		"- a\n":                    "yaml: line 1: expected a dictionary of settings",
		"{a: b":                    "yaml: line 1: did not find expected ',' or '}'",
		"a: {b: 1}\n":              `yaml: line 1: the value of "a" is not text`,
		"\"a\": 1\n\"b\": [1\n":    "yaml: line 1: did not find expected ',' or ']'",
	} {
		t.Run(file, func(t *testing.T) {
			if _, err := ParseDictionary([]byte(file)); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestHalvesOfSurrogatePairsAreNoText(t *testing.T) {
	for _, file := range []string{
		`{"a":"\ud83d"}`, `{"a":"\ude00"}`, `{"a":"\ude00\ud83d"}`, `{"a":"\ud83dx"}`, `{"a":"\ud83d\\ude00"}`,
		`{"a":"\udcff"}`, `{"\udcff":"a"}`, `{"a":"\ud83d\ude00\ud83d"}`,
	} {
		if _, err := ParseDictionary([]byte(file)); err != errNotText {
			t.Errorf("%s: %v", file, err)
		}
		if _, err := ParseJSONBlob(file); err != errNotText {
			t.Errorf("json_blob %s: %v", file, err)
		}
	}
}
