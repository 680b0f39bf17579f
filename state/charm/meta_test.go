package charm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMeta(t *testing.T) {
	got, err := ParseMeta([]byte(`
name: blog
summary: A blog
description: |
  It
  blogs.
maintainer: [a, b]
series: [noble, jammy]
format: 2
min-juju-version: 2.10
provides:
  website: http
  admin:
    interface: http
    scope: container
requires:
  db: {interface: mysql, limit: 1, optional: true, gets: [x]}
peers:
  ring: {interface: blog-ring}
resources:
  theme: {type: file, filename: theme.zip}
extra-bindings: {b: , a: }
tags: [misc]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Meta{
		Name: "blog", Summary: "A blog", Description: "It\nblogs.\n", Series: []string{"noble", "jammy"},
		Assumes: []Assumption{{Text: "juju >= 2.10"}}, ExtraBindings: []string{"a", "b"},
		Resources: map[string]Resource{"theme": {Type: "file", Filename: "theme.zip"}},
		Declared: map[string]Relation{
			"website": {Name: "website", Role: Provides, Interface: "http", Scope: Global},
			"admin":   {Name: "admin", Role: Provides, Interface: "http", Scope: Container},
			"db":      {Name: "db", Role: Consumes, Interface: "mysql", Scope: Global, Optional: true, Limit: 1},
			"ring":    {Name: "ring", Role: Peers, Interface: "blog-ring", Scope: Global},
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Meta{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var names []string
	for _, rel := range got.Relations() {
		names = append(names, rel.Name)
	}
	if diff := cmp.Diff([]string{"admin", "db", "juju-info", "ring", "website"}, names); diff != "" {
		t.Errorf("relations (-want +got):\n%s", diff)
	}
	if rel, ok := got.Relation("juju-info"); !ok || rel != (Relation{Name: JujuInfo, Role: Provides, Interface: JujuInfo, Scope: Global}) {
		t.Errorf("implied relation: %+v, %v", rel, ok)
	}
	if !got.Supports("jammy") || got.Supports("precise") {
		t.Error("the series of the charm are not heeded")
	}
}

func TestOldMeta(t *testing.T) {
	got, err := ParseMeta([]byte("name: mysql\nrevision: 7\nseries: precise\nprovides:\n  db: mysql\nrequires:\n"))
	if err != nil {
		t.Fatal(err)
	}
	if *got.revision != 7 || got.modern != "" || !cmp.Equal(got.Series, []string{"precise"}) {
		t.Errorf("got %+v", got)
	}
}

// TestMetaThatIsOddAndTaken checks that odd metadata is accepted if charms use it and Juju accepts it.
func TestMetaThatIsOddAndTaken(t *testing.T) {
	for text, ok := range map[string]func(m *Meta) bool{
		"name: a\nensemble: formula\nrevision: 201105311725": func(m *Meta) bool { return *m.revision == 201105311725 },
		"name: a\nname: b\nprovides: {x: y}\nprovides: {z: y}": func(m *Meta) bool {
			return m.Name == "b" && len(m.Declared) == 1 && m.Declared["z"].Interface == "y"
		},
		"name: juju-controller\nprovides: {dashboard: juju-dashboard, juju-x: y}": func(m *Meta) bool { return len(m.Declared) == 2 },
		"name: a\nsubordinate: \"false\"":                                         func(m *Meta) bool { return !m.Subordinate },
		"name: a\nsubordinate:":                                                   func(m *Meta) bool { return !m.Subordinate },
		"name: a\nprovides: {x: {interface: y, limit: \"1\", optional: \"true\"}}": func(m *Meta) bool {
			return m.Declared["x"].Limit == 1 && m.Declared["x"].Optional
		},
	} {
		if m, err := ParseMeta([]byte(text)); err != nil || !ok(m) {
			t.Errorf("%q became %+v, %v", text, m, err)
		}
	}
}

func TestSubordinateRequiresItsPrincipal(t *testing.T) {
	got, err := ParseMeta([]byte("name: logger\nsubordinate: true\nrequires:\n  juju-info: {interface: juju-info, scope: container}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if rel, _ := got.Relation("juju-info"); rel.Role != Consumes || len(got.Relations()) != 1 {
		t.Errorf("relations: %+v", got.Relations())
	}
}

func TestMetaIsRefused(t *testing.T) {
	for text, complaint := range map[string]string{
		"":                           "has no name",
		"summary: x":                 "has no name",
		"name: [a]":                  "line 1: a list is not a string",
		"name: A":                    "invalid charm name",
		"- a":                        " is not a",
		"name: a\nseries: [../b]":    "invalid series name",
		"name: a\nseries: {b: c}":    " is not a",
		"name: a\nrevision: -1":      "out of range",
		"name: a\nrevision: x":       " is not a",
		"name: a\nsubordinate: true": "must require a relation with scope container",
		"name: a\nsubordinate: true\nrequires: {db: mysql}":    "must require a relation with scope container",
		"name: a\nhook-dialect: future":                        "unknown hook dialect",
		"name: a\nprovides: {db: }":                            "invalid interface name",
		"name: a\nprovides: {db: [x]}":                         "a relation must be the name of an interface, or a mapping",
		"name: a\nprovides: {db: {scope: global}}":             "invalid interface name",
		"name: a\nprovides: {db: {interface: x, scope: near}}": "want global or container",
		"name: a\nprovides: {db: {interface: x, limit: -1}}":   "below 0",
		"name: a\nprovides: {db: x}\nrequires: {db: x}":        "declared twice",
		"name: a\nprovides: {relation-1: x}":                   "looks like a relation id",
		"name: a\nprovides: {juju-info: x}":                    "reserved",
		"name: a\nrequires: {juju: x}":                         "reserved",
		"name: juju-a\nprovides: {juju-info: x}":               "reserved",
		"name: a\nprovides: {info: juju-info}":                 "a charm can only require it",
		"name: a\npeers: {info: {interface: juju-x}}":          "a charm can only require it",
		"name: a\nprovides: db":                                " is not a",
		"name: \x00":                                           "control characters",
		"a: &a [*a]":                                           "has no name",
		"name: " + strings.Repeat("a", MaxYAML):                "too big",
		bomb():                                                 "a list is not a",
	} {
		if got, err := ParseMeta([]byte(text)); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%.100q became %+v, %v; want an error with %q", text, got, err, complaint)
		}
	}
}

// bomb returns a "billion laughs" document.
func bomb() string {
	text := "a0: &a0 [x]\n"
	for i := 1; i < 10; i++ {
		prev := string(rune('0' + i - 1))
		text += "a" + string(rune('0'+i)) + ": &a" + string(rune('0'+i)) + " [" + strings.Repeat("*a"+prev+",", 20) + "]\n"
	}
	return text + "name: a\nextra-bindings: *a9\nseries: *a9\n"
}

func TestMetaRequiresTheImpliedRelationOfOthers(t *testing.T) {
	if _, err := ParseMeta([]byte("name: watch\nrequires: {all: juju-info}")); err != nil {
		t.Error(err)
	}
}
