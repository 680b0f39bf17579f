package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDifferences checks which changes count as differences and which do not.
func TestDifferences(t *testing.T) {
	const before = `package p

import "fmt"

// f prints.
func f(a, b int) { fmt.Println(a, b) }

type T struct{ n int }

func (t *T) Add() { t.n++ }
`
	tests := []struct {
		name  string
		after map[string]string
		want  []string
	}{
		{"nothing", map[string]string{"p/a.go": before}, nil},
		{
			"air, comments and another file",
			map[string]string{
				"p/a.go": "package p\n\nimport \"fmt\"\n\nfunc f(a, b int) {\n\t// why\n\tfmt.Println(\n\t\ta,\n\n\t\tb,\n\t)\n}\n",
				"p/b.go": "package p\n\ntype (\n\t// T counts.\n\tT struct {\n\t\tn int\n\t}\n)\n\nfunc (t *T) Add() { t.n++ }\n",
			},
			nil,
		},
		{
			"a different argument",
			map[string]string{"p/a.go": "package p\nfunc f(a, b int) { fmt.Println(b, a) }\ntype T struct{ n int }\nfunc (t *T) Add() { t.n++ }\n"},
			[]string{"p p: f"},
		},
		{
			"a method that is gone, and one that is new",
			map[string]string{"p/a.go": "package p\nfunc f(a, b int) { fmt.Println(a, b) }\ntype T struct{ n int }\nfunc (t *T) Sub() { t.n++ }\n"},
			[]string{"p p: T.Add", "p p: T.Sub"},
		},
		{
			"a different package",
			map[string]string{"q/a.go": before},
			[]string{"p p: T.Add", "p p: f", "p p: type T", "q p: T.Add", "q p: f", "q p: type T"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old := read(t, map[string]string{"p/a.go": before})

			got := differences(old, read(t, test.after))

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, files map[string]string) tree {
	t.Helper()

	all := tree{}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := all.addFile(name, []byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
