package bundle_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bijou/multicall/juju/bundle"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gopkg.in/yaml.v3"
)

// parseFiles parses the named files in order. The map gives their texts, for example "b/x.yaml: text".
func parseFiles(files map[string]string, names ...string) (*bundle.Bundle, error) {
	return bundle.Parse(bundle.Files{Read: reader(files), ReadOutside: true}, names...)
}

// reader returns a function that reads the texts of files, by their paths.
func reader(files map[string]string) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) {
		if text, ok := files[path]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
}

const base = `
variables: {v: &v varied}
series: jammy
services:
  old: {charm: local:old}
applications:
  db:
    charm: ./db
    num_units: 2
    to: [1, 2]
    options: {a: *v, b: include-file://b.txt, c: 1.10, d: d}
    resources: {r: r.bin}
    constraints: mem=1G
  web: {charm: ../web, num_units: 1, to: db/1, expose: true}
  gone: {charm: /gone}
machines: {1: , 2: {series: noble}}
relations: [[web, [db, "old:x"]], ["gone:y", "db:y"]]
`

func TestParse(t *testing.T) {
	files := map[string]string{
		"/b/bundle.yaml": base + "---\napplications: {db: {num_units: 3}}\n",
		"/b/b.txt":       "B",
		"/o/over.yaml":   "applications: {gone: , db: {options: {d: , e: include-base64://e}}, web: {charm: ./other, expose: false}}\nrelations: [[web, \"db:z\"]]",
		"/o/e":           "\xff\x00",
	}
	got, err := parseFiles(files, "/b/bundle.yaml", "/o/over.yaml")
	if err != nil {
		t.Fatal(err)
	}
	no, constraints := false, "mem=1G"
	text := func(value string) yaml.Node { return yaml.Node{Kind: yaml.ScalarNode, Value: value} }
	want := &bundle.Bundle{
		Series: "jammy",
		Applications: map[string]*bundle.Application{
			"old": {Charm: "local:old"},
			"db": {
				Charm: "/b/db", NumUnits: 3, To: []string{"1", "2"}, Constraints: &constraints, Resources: map[string]string{"r": "/b/r.bin"},
				Options: map[string]yaml.Node{"a": text("varied"), "b": text("B"), "c": text("1.10"), "e": text("/wA=")},
			},
			"web": {Charm: "/o/other", NumUnits: 1, To: []string{"db/1"}, Expose: &no},
		},
		Machines:  map[string]bundle.Machine{"1": {}, "2": {Series: "noble"}},
		Relations: [][2]string{{"web", "db"}, {"web", "old:x"}, {"web", "db:z"}},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(yaml.Node{}, "Tag", "Line", "Column", "Anchor", "Style")); diff != "" {
		t.Error(diff)
	}
}

// TestNullRemovesKeys checks that null in an overlay removes what the bundle has given, with the files that it named.
func TestNullRemovesKeys(t *testing.T) {
	files := map[string]string{
		"/b/bundle.yaml": `
applications:
  all:
    charm: ch:db
    channel: edge
    series: jammy
    num_units: 2
    to: [new, new]
    expose: true
    trust: true
    constraints: mem=1G
    options: {a: include-file://../a, b: include-file://b}
    resources: {file: ../r.bin, revision: 3}
    storage: {data: 1G}
  entries:
    charm: ch:db
    base: ubuntu@22.04
    options: {a: include-file://../a, b: x}
    resources: {file: ../r.bin, kept: 4, revision: 3}
    storage: {data: 1G, other: 2G}
`,
		"/o/over.yaml": `
applications:
  all: {channel: , series: , num_units: , to: , expose: , trust: , constraints: , options: , resources: , storage: }
  entries: {base: ~, options: {a: }, resources: {file: , revision: }, storage: {data: }}
`,
	}
	isFromStore := func(string) bool { return true }
	access := bundle.Files{Read: reader(files), ReadOutside: true, FromStore: isFromStore}
	got, err := bundle.Parse(access, "/b/bundle.yaml", "/o/over.yaml")
	if err != nil {
		t.Fatal(err)
	}

	want := map[string]*bundle.Application{
		"all": {Charm: "ch:db"},
		"entries": {
			Charm:     "ch:db",
			Options:   map[string]yaml.Node{"b": {Kind: yaml.ScalarNode, Value: "x"}},
			Revisions: map[string]int{"kept": 4},
			Storage:   map[string]string{"other": "2G"},
		},
	}
	ignored := cmpopts.IgnoreFields(yaml.Node{}, "Tag", "Line", "Column", "Anchor", "Style")
	if diff := cmp.Diff(want, got.Applications, cmpopts.EquateEmpty(), ignored); diff != "" {
		t.Error(diff)
	}
	if len(got.Outside) != 0 {
		t.Errorf("files outside of the directories are named: %q", got.Outside)
	}

	// A null can be merged.
	got, err = parseFiles(map[string]string{
		"/b/bundle.yaml": "applications: {a: {charm: /db, options: {o: include-file://x}}}",
		"/b/x":           "X",
		"/o/over.yaml":   "applications: {b: &n {charm: /db, options: ~}, a: {<<: *n}}\n---\napplications: {a: {options: {p: y}}}",
	}, "/b/bundle.yaml", "/o/over.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if options := got.Applications["a"].Options; len(options) != 1 {
		t.Errorf("the options are %v, want only p", options)
	}

	_, err = parseFiles(map[string]string{
		"/b/bundle.yaml": "applications: {a: {charm: db}}",
		"/o/over.yaml":   "applications: {a: {charm: }}",
	}, "/b/bundle.yaml", "/o/over.yaml")
	if err == nil {
		t.Error("an application without a charm is accepted")
	}
}

// TestOutside checks that a bundle and each overlay have their own directory. Files outside of it are listed
// in an error, and are read only with permission.
func TestOutside(t *testing.T) {
	const bundleFile = `
applications:
  inside: {charm: ./c, options: {o: include-file://sub/../x, url: "https://include-file"}, resources: {r: sub/r, s: 7}}
  far:
    charm: ../c
    options: {o: include-file:///etc/passwd, p: "include-base64://../x", q: include-file://link, plain: /etc/passwd}
    resources: {r: /etc/shadow, s: ./link/s}
  named: {charm: local:c}
`
	all := []string{
		`application "far": option "o": /etc/passwd`,
		`application "far": option "p": /x`,
		`application "far": option "q": /b/link, which is /elsewhere`,
		`application "far": resource "r": /etc/shadow`,
		`application "far": resource "s": /b/link/s, which is /elsewhere/s`,
	}
	for _, tt := range []struct {
		name, overlay string
		want          []string
	}{
		{"alone", "{}", all},
		{"an overlay takes it away", "applications: {far: }", nil},
		{"an overlay says other things", "applications: {far: {charm: ./c, options: {o: text, p: , q: include-file://q}, resources: {r: r, s: ''}}}", nil},
		{"an overlay says a part", "applications: {far: {options: {o: , p: p}}}", all[2:]},
		{"an overlay has its own folder", "applications: {inside: {options: {o: include-file:///b/x}}}", append(all[:5:5], `application "inside": option "o": /b/x`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var read []string
			got, err := bundle.Parse(bundle.Files{
				Read: func(path string) ([]byte, error) {
					read = append(read, path)
					return []byte(map[string]string{"/b/bundle.yaml": bundleFile, "/o/over.yaml": tt.overlay}[path]), nil
				},
				Resolve: func(path string) string { return strings.Replace(path, "/b/link", "/elsewhere", 1) },
			}, "/b/bundle.yaml", "/o/over.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Outside, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}

			inside := []string{"/b/bundle.yaml", "/b/x", "/o/over.yaml", "/o/q"}
			for _, path := range read {
				if !slices.Contains(inside, path) {
					t.Errorf("%s was read", path)
				}
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	app := func(rest string) string { return "applications: {a: {charm: ./a" + rest + "}}\n" }
	for text, want := range map[string]string{
		"":                              "no application",
		"applications: [a]":             "is not a dictionary",
		"applications: {a: {}}":         `application "a" has no charm`,
		"applications: {A: {charm: x}}": `invalid application name "A"`,
		app(", num_unit: 1"):            `line 1: application "a" has an unknown key "num_unit"; did you mean "num_units"?`,
		app(", xyzzy: 1"):               `unknown key "xyzzy"` + "\n",
		app(", num_units: -1"):          "num_units is -1",
		app(", num_units: 10001"):       "num_units is 10001",
		app(", num_units: many"):        `"many" is not an int`,
		app(", to: [new]"):              `"to" has more entries (1) than there are units (num_units: 0)`,
		app(", num_units: 1, to: x"):    "no such machine or application",
		app("") + "machines: {1: {}}":   `machine "1"`,
		app(", num_units: 1, to: m") + "machines: {m: }": `machine "m": want a number`,
		app("") + "relations: [[a]]":                     "line 2: a relation must be a list of two items",
		app("") + "relations: [[a, b]]":                  `no application "b"`,
		app(", options: {o: include-file://none}"):       `option "o": file does not exist`,
		app("") + "---\napplications: {a: }":             "no application",
		strings.Repeat("[", 20000):                       "exceeded max depth",
		bomb():                                           "excessive aliasing",
		"applications: " + strings.Repeat(" ", 1<<20):    "too big",
	} {
		_, err := parseFiles(map[string]string{"/b.yaml": text}, "/b.yaml")
		if err == nil || !strings.Contains(err.Error()+"\n", want) {
			t.Errorf("%.80q: %v, want %q", text, err, want)
		}
	}
}

// TestMaxUnits checks that only the units of applications with a valid number count towards the limit.
func TestMaxUnits(t *testing.T) {
	for _, tt := range []struct {
		name, units string
		want        []string
	}{
		{"one has too many", "20000 1", []string{"a"}},
		{"one has less than none", "-5 10000", []string{"a"}},
		{"less than none makes no room for others", "-5 10001", []string{"a", "b"}},
		{"together as many as possible", "6000 4000", nil},
		{"together too many", "6000 4001", []string{"b"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b, _ := strings.Cut(tt.units, " ")
			text := "applications: {a: {charm: ./a, num_units: " + a + "}, b: {charm: ./b, num_units: " + b + "}}"
			_, err := parseFiles(map[string]string{"/b.yaml": text}, "/b.yaml")
			var got []string
			if err != nil {
				for line := range strings.Lines(err.Error()) {
					_, rest, _ := strings.Cut(line, `application "`)
					got = append(got, rest[:1])
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s\n%v", diff, err)
			}
		})
	}
}

// TestManyErrors checks that at most 100 errors are printed.
func TestManyErrors(t *testing.T) {
	_, err := parseFiles(map[string]string{"/b.yaml": strings.Repeat("--- []\n", 1000)}, "/b.yaml")
	if err == nil || strings.Count(err.Error(), "a list is not a dictionary") != 100 {
		t.Errorf("%.500v", err)
	}
}

// bomb returns nested merges of dictionaries, nine at each level.
func bomb() string {
	text, last := "variables:\n  a: &a {k: v}\n", "a"
	for _, next := range strings.Split("bcdefghijkl", "") {
		text += "  " + next + ": &" + next + " {<<: [" + strings.TrimSuffix(strings.Repeat("*"+last+",", 9), ",") + "]}\n"
		last = next
	}
	return text + "applications: {x: {charm: ./x, options: *" + last + "}}\n"
}

func TestMissing(t *testing.T) {
	b, err := parseFiles(map[string]string{"/b.yaml": `
name: n
saas: {s: {url: u}}
applications:
  a: {charm: ./a, num_units: 2, to: ["lxd:0", kvm:new], trust: false, channel: stable, devices: {s: 1}, resources: {r: 3}, annotations: {x: y}}
`}, "/b.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the bundle: saas: ", `application "a": devices: `, `application "a": resource "r": a revision (3)`, `application "a": cannot place a unit in "lxd:0": `, `application "a": cannot place a unit in "kvm:new": `,
	}
	for i, text := range b.Missing {
		if len(b.Missing) != len(want) || !strings.HasPrefix(text, want[i]) {
			t.Fatalf("missing %q, want %q", b.Missing, want)
		}
	}
	if diff := cmp.Diff([]string{`application "a": annotations`, `application "a": channel`}, b.Ignored); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"new", "new"}, []string(b.Applications["a"].To)); diff != "" {
		t.Error(diff)
	}
}

// FuzzParse checks that no input causes a panic or an unlimited amount of work.
func FuzzParse(f *testing.F) {
	f.Add(base)
	f.Add("applications: {a: {charm: &x ./a, <<: *x}}")
	f.Add("- relations\n--- {}\n")
	f.Fuzz(func(t *testing.T, text string) {
		files := bundle.Files{Read: func(path string) ([]byte, error) { return []byte(text), nil }}
		b, err := bundle.Parse(files, filepath.FromSlash("/b.yaml"))
		if err == nil && len(b.Applications) == 0 {
			t.Error("a bundle without applications is taken")
		}
	})
}
