package charm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state/number"
)

const backupYAML = `
backup:
  description: Write a dump.
  params:
    filename: {type: string, minLength: 1, maxLength: 8, pattern: '^[a-z.]+$'}
    level: {type: integer, default: 3, minimum: 1, maximum: 9}
    ratio: {type: number}
    quiet: {type: boolean}
    mode: {type: string, enum: [full, delta], default: full}
    tables: {type: array, items: {type: string}}
    target:
      type: object
      properties:
        host: {type: string, default: localhost}
        port: {type: [integer, "null"]}
      required: [port]
      additionalProperties: false
    anything: {}
    size: {type: integer, maximum: 9007199254740992}
  required: [filename]
  additionalProperties: false
pause:
open-one:
  params:
    x: {type: string}
open-two:
  params:
    step: {type: number, enum: [1, 2.50]}
spelled:
  properties:
    ttl: {type: string, default: 8760h}
`

func TestActionParameters(t *testing.T) {
	actions, err := parseActions([]byte(backupYAML), "")
	if err != nil {
		t.Fatal(err)
	}
	with := func(more map[string]any) map[string]any {
		all := map[string]any{"filename": "a.b"}
		for k, v := range more {
			all[k] = v
		}
		return all
	}
	defaults := map[string]any{
		"filename": "a.b", "level": json.Number("3"), "mode": "full", "target": map[string]any{"host": "localhost"},
	}
	for _, tc := range []struct {
		name, action string
		given        map[string]any
		want         map[string]any
		err          string
	}{
		{"defaults", "backup", with(nil), defaults, ""},
		{"as JSON Schema spells it", "spelled", nil, map[string]any{"ttl": "8760h"}, ""},
		{"required", "backup", nil, nil, `"filename" is required`},
		{"unknown", "backup", with(map[string]any{"x": 1}), nil, `unknown parameter "x"; the known ones are anything, filename, level,`},
		{"of another type", "backup", with(map[string]any{"level": "many"}), nil, `"level": "many" is not of type integer`},
		{"no whole number", "backup", with(map[string]any{"level": 1.5}), nil, `not of type integer`},
		{"too small", "backup", with(map[string]any{"level": 0}), nil, `"level": 0 is too small: at least 1`},
		{"too large", "backup", with(map[string]any{"level": 10}), nil, `at most 9`},
		{"too long", "backup", with(map[string]any{"filename": "abcdefghi"}), nil, `too long: 9 characters, at most 8`},
		{"too short", "backup", with(map[string]any{"filename": ""}), nil, `too short`},
		{"pattern", "backup", with(map[string]any{"filename": "A"}), nil, `does not match`},
		{"enum", "backup", with(map[string]any{"mode": "half"}), nil, `"half" is not one of ["full","delta"]`},
		{"boolean", "backup", with(map[string]any{"quiet": "yes"}), nil, `not of type boolean`},
		{"list", "backup", with(map[string]any{"tables": []any{"a", 1}}), nil, `"tables"[1]: 1 is not of type string`},
		{"nested", "backup", with(map[string]any{"target": map[string]any{"port": "x"}}), nil, `"target.port": "x" is not of type integer or null`},
		{"nested required", "backup", with(map[string]any{"target": map[string]any{}}), nil, `"target.port" is required`},
		{"nested unknown", "backup", with(map[string]any{"target": map[string]any{"port": nil, "hots": 1}}), nil, `unknown parameter "target.hots"`},
		{"whole in other words", "backup", with(map[string]any{"size": json.Number("3.0"), "tables": []any{}}), with(map[string]any{
			"size": json.Number("3"), "tables": []any{}, "level": json.Number("3"), "mode": "full", "target": map[string]any{"host": "localhost"},
		}), ""},
		{"beyond what a float64 can tell", "backup", with(map[string]any{"size": json.Number("9007199254740993")}), nil,
			`"size": 9007199254740993 is too large: at most 9007199254740992`},
		{"a number of the enum, by value", "open-two", map[string]any{"step": json.Number("2.5")}, map[string]any{"step": json.Number("2.5")}, ""},
		{"a number as it is written", "open-one", map[string]any{"y": json.Number("1.10")}, map[string]any{"y": json.Number("1.10")}, ""},
		{"null", "pause", map[string]any{"x": nil}, map[string]any{"x": nil}, ""},
		{"no schema", "pause", nil, map[string]any{}, ""},
		{"open", "open-one", map[string]any{"y": []any{1}}, map[string]any{"y": []any{json.Number("1")}}, ""},
		{"no JSON", "open-one", map[string]any{"y": map[any]any{1: 2}}, nil, "JSON cannot express"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := actions[tc.action].Check(tc.given)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: error %v, want %q", tc.name, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got):\n%s", tc.name, err, diff)
			}
		})
	}
}

func TestActionText(t *testing.T) {
	actions, err := parseActions([]byte(backupYAML), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path string
		text string
		want any
	}{
		{"filename", "1.10", "1.10"},
		{"level", "5", json.Number("5")},
		{"level", "9007199254740993", json.Number("9007199254740993")},
		{"quiet", "true", true},
		{"quiet", "yes", true},
		{"quiet", "Off", false},
		{"target.host", "007", "007"},
		{"target.port", "8080", json.Number("8080")},
		{"tables", "[a, b]", []any{"a", "b"}},
		{"other.deep", "x", "x"},
		{"anything", "", nil},
	} {
		got, err := actions["backup"].ParseText(strings.Split(tc.path, "."), tc.text)
		if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
			t.Errorf("%s=%s: %v (-want +got):\n%s", tc.path, tc.text, err, diff)
		}
	}
}

func TestParseActionsRefuses(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"a list", "- x\n", " is not a"},
		{"name", "'../x': {}\n", `invalid action name "../x"`},
		{"type", "a: {params: {p: {type: int}}}\n", `"p": unknown type "int"`},
		{"pattern", "a: {params: {p: {pattern: '('}}}\n", "pattern"},
		{"no JSON", "a: {params: {p: {default: .nan}}}\n", "JSON cannot express it"},
		{"no number", "a: {params: {p: {maximum: many}}}\n", `maximum: "many" is not a number`},
		{"no list", "a: {params: {p: {enum: many}}}\n", `enum: "many" is not a list`},
		{"dotted", "a: {params: {p.q: {}}}\n", "invalid parameter name"},
		{"params", "a: {params: [1]}\n", `action "a"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parseActions([]byte(tc.yaml), "")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
			}
		})
	}
	bomb := "a: {params: {p: {enum: &b [" + strings.Repeat("x, ", 1000) + "]}}}\nb: {params: {"
	for i := range 100 {
		bomb += fmt.Sprintf("p%d: {enum: *b}, ", i)
	}
	if _, err := parseActions([]byte(bomb+"}}\n"), ""); err == nil || !strings.Contains(err.Error(), "more than 50000 values") {
		t.Errorf("bomb: %v", err)
	}
	if _, err := parseActions([]byte("a: &a {params: {p: *a}}\n"), ""); err == nil {
		t.Error("an alias of itself was taken")
	}
	deep := "a: {params: {p: " + strings.Repeat("{items: ", maxDepth+2) + "{}" + strings.Repeat("}", maxDepth+2) + "}}\n"
	if _, err := parseActions([]byte(deep), ""); err == nil || !strings.Contains(err.Error(), "too deep") {
		t.Errorf("deep: %v", err)
	}
}

func TestActionsOfCharmcraft(t *testing.T) {
	files := map[string]string{
		"charmcraft.yaml": "name: app\nactions:\n  restart: {description: again}\n",
		"actions.yaml":    "backup: {}\n",
	}
	c, err := ReadDir(makeDir(t, files))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Actions) != 2 || c.Actions["restart"].Description != "again" {
		t.Errorf("actions: %+v", c.Actions)
	}
}

func TestResourceFile(t *testing.T) {
	m, err := ParseMeta([]byte("name: app\nresources:\n  site: {type: file, filename: ../site.zip}\n  plain: {}\n  image: {type: oci-image}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, want, err string }{
		{"site", "site.zip", ""},
		{"plain", "plain", ""},
		{"image", "", `of type "oci-image": only files`},
		{"other", "", "it has image, plain, site"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := m.ResourceFile(tc.name)
			if got != tc.want || (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %q, %v", tc.name, got, err)
			}
		})
	}
	for _, bad := range []string{"resources: {'../x': {}}", "resources: {x: {filename: ..}}"} {
		if _, err := ParseMeta([]byte("name: app\n" + bad + "\n")); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func FuzzActions(f *testing.F) {
	f.Add([]byte(backupYAML), []byte("filename: a.b\nlevel: 3\ntarget: {port: 1}\n"))
	f.Add([]byte("a: {params: {p: {type: [array, object], items: {enum: [1, x, null]}, properties: {q: {default: {}}}}}}\n"), []byte("p: [1]\n"))
	f.Add([]byte("a: &a {params: {p: {pattern: '^$'}}}\nb: *a\n"), []byte("p: ''\n"))
	f.Add([]byte("a: {params: {p: {default: .nan, properties: {q: {default: 1}}}}}\n"), []byte("{}\n"))
	f.Fuzz(func(t *testing.T, schema, values []byte) {
		actions, err := parseActions(schema, "")
		if err != nil {
			return
		}
		var given map[string]any
		if err := unmarshalStrict(values, &given); err != nil {
			return
		}
		for name, a := range actions {
			must(t, CheckAction(name))
			full, err := a.Check(given)
			if err != nil {
				continue
			}
			if _, err := json.Marshal(full); err != nil {
				t.Errorf("%s: its parameters cannot be stored: %v", name, err)
			}
			data, err := json.Marshal(a)
			must(t, err)
			var back Action
			// Stored records are read in the same way.
			must(t, number.Unmarshal(data, &back))
			again, err := back.Check(given)
			if diff := cmp.Diff(full, again); err != nil || diff != "" {
				t.Errorf("%s: stored and read, it is another (%v):\n%s", name, err, diff)
			}
		}
	})
}
