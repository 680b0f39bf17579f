package charm

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const options = `
options:
  title: {type: string, default: My Title, description: The title}
  version: {type: string, default: 1.10}
  empty: {type: string, default: ""}
  unset: {type: string}
  port: {type: int, default: 80}
  quoted: {type: int, default: "8080"}
  octal: {type: int, default: 0755}
  mask: {type: int, default: 0x10}
  nothing: {type: int, default: ""}
  ratio: {type: float, default: 1}
  debug: {type: boolean, default: no}
  old: {type: bool}
  older: {type: str, default: 1.10}
  untyped: {default: yes}
  hidden: {type: secret}
`

func schema(t *testing.T) *Config {
	t.Helper()
	c, err := parseConfig([]byte(options), "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDefaults(t *testing.T) {
	want := map[string]any{
		"title": "My Title", "version": "1.10", "empty": "", "unset": nil, "port": int64(80), "quoted": int64(8080), "octal": int64(0o755), "mask": int64(16),
		"nothing": nil, "ratio": 1.0, "debug": false, "old": nil,
		"older": "1.10", "untyped": "yes", "hidden": nil,
	}
	if diff := cmp.Diff(want, schema(t).Defaults()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := schema(t).Options["title"]; got != (Option{Type: String, Description: "The title", Default: "My Title"}) {
		t.Errorf("title: %+v", got)
	}
	if got := schema(t).Options["old"].Type; got != Boolean {
		t.Errorf("type bool became %q", got)
	}
}

func TestConfigIsRefused(t *testing.T) {
	for text, complaint := range map[string]string{
		"options: {a: {type: list}}":                           `option "a": unknown type "list": want string, int, float or boolean`,
		"options: {a: {type: int, default: x}}":                `default of option "a": "x" is not an int`,
		"options: {a: {type: int, default: 1.5}}":              `"1.5" is not an int`,
		"options: {a: {type: boolean, default: 2}}":            `"2" is not a boolean`,
		"options: {a: {type: string, default: [x]}}":           `a list is not a string`,
		"options: {a: {type: float, default: {}}}":             `a dictionary is not a float`,
		"options: {a: {type: float, default: .nan}}":           `is not a float`,
		"options: {a: {type: string, default: !!binary gA==}}": `binary data is not a string`,
		"options: {'': {type: string}}":                        "an option has no name",
		"options: [a]":                                         " is not a",
		"options: {a: 1}":                                      " is not a",
		"#" + strings.Repeat("a", MaxYAML):                     "too big",
	} {
		if got, err := parseConfig([]byte(text), ""); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%.100q became %+v, %v; want an error with %q", text, got, err, complaint)
		}
	}
	for _, text := range []string{"", "options:", "options: {}", "other: 1"} {
		if got, err := parseConfig([]byte(text), ""); err != nil || len(got.Options) != 0 {
			t.Errorf("%q became %+v, %v; want no options", text, got, err)
		}
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       any
		err        string
	}{
		{"title", "x=y", "x=y", ""},
		{"title", "", "", ""},
		{"title", "\xff", nil, `option "title": "\xff" is not UTF-8`},
		{"title", "a\x00", nil, `has a NUL byte`},
		{"port", "-5", int64(-5), ""},
		{"port", "010", int64(10), ""},
		{"port", "80.0", nil, `option "port": "80.0" is not an int`},
		{"port", "", nil, `option "port": "" is not an int`},
		{"port", " 80", nil, `is not an int`},
		{"port", "9223372036854775808", nil, `is not an int`},
		{"ratio", "2", 2.0, ""},
		{"ratio", "1e3", 1000.0, ""},
		{"ratio", "NaN", nil, `option "ratio": "NaN" is not a float`},
		{"ratio", "-inf", nil, `is not a float`},
		{"ratio", "1e999", nil, `is not a float`},
		{"debug", "True", true, ""},
		{"debug", "yes", true, ""},
		{"debug", "0", false, ""},
		{"debug", "maybe", nil, `option "debug": "maybe" is not a boolean (true or false)`},
		{"debug", strings.Repeat("x", 1000), nil, `is not a boolean`},
		{"nosuch", "x", nil, `unknown option "nosuch": the charm has ["debug" "empty"`},
	} {
		got, err := schema(t).ParseText(c.name, c.text)
		check(t, c.name+"="+c.text, c.want, got, c.err, err)
	}
	_, err := new(Config).ParseText("a", "b")
	check(t, "no options", nil, nil, `unknown option "a": the charm has none`, err)
}

func TestYAML(t *testing.T) {
	for text, c := range map[string]struct {
		want map[string]any
		err  string
	}{
		"":                                   {map[string]any{}, ""},
		"title: Hi\nport: 8080\ndebug: true": {map[string]any{"title": "Hi", "port": int64(8080), "debug": true}, ""},
		"blog: {title: Hi}\nother: {x: y}":   {map[string]any{"title": "Hi"}, ""},
		"blog: &b {title: Hi}\n":             {map[string]any{"title": "Hi"}, ""},
		"title: 1.10\nversion: yes":          {map[string]any{"title": "1.10", "version": "yes"}, ""},
		"title: null\nport: ~":               {map[string]any{"title": nil, "port": nil}, ""},
		"x: &x 5\n":                          {nil, `unknown option "x"`},
		"title: &x Hi\nversion: *x":          {map[string]any{"title": "Hi", "version": "Hi"}, ""},
		"title: [a]":                         {nil, `option "title": a list is not a string`},
		"title: {a: b}":                      {nil, `option "title": a dictionary is not a string`},
		"port: many":                         {nil, `option "port": "many" is not an int`},
		"port: 1.5":                          {nil, `option "port": "1.5" is not an int`},
		"port: true":                         {nil, `option "port": "true" is not an int`},
		"ratio: high":                        {nil, `option "ratio": "high" is not a float`},
		"debug: 7":                           {nil, `option "debug": "7" is not a boolean`},
		"blog: {nosuch: 1}":                  {nil, `unknown option "nosuch"`},
		"blog: 1":                            {nil, `unknown option "blog"`},
		"[a":                                 {nil, "yaml: "},
		"a: &a {<<: *a}":                     {nil, ""},
		"blog: {a: &a [*a], title: x}":       {nil, `unknown option "a"`},
	} {
		got, err := schema(t).ParseYAML([]byte(text), "blog")
		if c.want == nil {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q became %v, %v; want an error with %q", text, got, err, c.err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

func TestCoerce(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		want  any
		err   string
	}{
		{"title", "x", "x", ""},
		{"title", 5.0, nil, `option "title": 5 is not a string`},
		{"title", true, nil, `"true" is not a string`},
		{"title", []any{"x"}, nil, `"[x]" is not a string`},
		{"port", 80.0, int64(80), ""},
		{"port", 80, int64(80), ""},
		{"port", json.Number("9223372036854775807"), int64(math.MaxInt64), ""},
		{"port", 80.5, nil, `80.5 is not an int`},
		{"port", 1e300, nil, `1e+300 is not an int`},
		{"port", "80", nil, `"80" is not an int`},
		{"port", nil, nil, ""},
		{"ratio", int64(3), 3.0, ""},
		{"ratio", math.NaN(), nil, `NaN is not a float`},
		{"debug", true, true, ""},
		{"debug", 1, nil, `1 is not a boolean`},
		{"nosuch", 1, nil, `unknown option "nosuch"`},
	} {
		got, err := schema(t).Coerce(c.name, c.value)
		check(t, c.name, c.want, got, c.err, err)
	}
}

func TestEffective(t *testing.T) {
	got := schema(t).Effective(map[string]any{"title": "Hi", "port": 8080.0, "gone": "x", "debug": "not any more", "ratio": nil})
	want := schema(t).Defaults()
	want["title"], want["port"] = "Hi", int64(8080)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// check compares a result, or an error with a part of its text.
func check(t *testing.T, what string, want, got any, complaint string, err error) {
	t.Helper()
	if complaint != "" {
		if err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: got %v, %v; want an error with %q", what, got, err, complaint)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
	}
}

func TestParsePrintedOptions(t *testing.T) {
	c, err := ParseConfig([]byte("options: {title: {type: string, default: none}, port: {type: int}, ratio: {type: float, default: 2.0}}"))
	must(t, err)
	tests := []struct {
		name, file string
		want       map[string]any
	}{
		{"set", "service: blog\ncharm: local:x/blog-1\nsettings: {title: {type: string, value: Mine}, port: {type: int, value: 80}}", map[string]any{"title": "Mine", "port": int64(80)}},
		{"a default that is one still", "charm: x\nsettings: {title: {value: none, default: true}, ratio: {value: 2, default: true}, port: {type: int, value: null, default: true}}", map[string]any{"title": nil, "ratio": nil, "port": nil}},
		{"a default that was edited", "charm: x\nsettings: {title: {value: Mine, default: true}}", map[string]any{"title": "Mine"}},
		{"a value that is the default's", "charm: x\nsettings: {title: {value: none}}", map[string]any{"title": "none"}},
		{"JSON", `{"application":"blog","charm":"x","settings":{"title":{"value":"Mine","source":"user"},"ratio":{"value":2,"source":"default"}},"application-config":{}}`, map[string]any{"title": "Mine", "ratio": nil}},
		{"a default of another charm", "charm: x\nsettings: {gone: {value: 1, default: true}}", map[string]any{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.ParseYAML([]byte(tt.file), "blog")
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}

	if _, err := c.ParseYAML([]byte("charm: x\nsettings: {gone: {value: 1}}"), "blog"); err == nil {
		t.Error("an option that the charm does not have was set")
	}
}
