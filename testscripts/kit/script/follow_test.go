package script

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExamples checks that examples are read from a page, and compares outputs with them.
func TestExamples(t *testing.T) {
	got := readExamples("# Top\n```console\n$ a \\\n> b\nx\n...\n> y\n$ c\n```\n$ no\n## Next\n```sh\n$ no\n```\n```console\n$ d\n1 ... 2\n```\n```bash\ne --f # g\n```\n")
	want := []example{{"Top", "a \\\nb\n", "x\n...\n> y\n", false}, {"Top", "c\n", "", false}, {"Next", "d\n", "1 ... 2\n", false}, {"Next", "e --f # g\n", "", true}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(example{})); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct {
		want, output string
		match        bool
	}{
		{"", "", true},
		{"", "x\n", false},
		{"a\n", "a\n", true},
		{"a\n", "a\nb\n", false},
		{"...\na\n...\n", "a\n", true},
		{"...\na\n...\n", "0\na\nb\nc\n", true},
		{"...\na\n...\n", "0\n", false},
		{"a\n  ...\n  ...\nb\n", "a\nx\nb\n", true},
		{"a ... (b)\n", "a x y (b)\n", true},
		{"a ... b\n", "a x\ny b\n", false},
	} {
		if got := (example{want: tt.want}).pattern().MatchString(tt.output); got != tt.match {
			t.Errorf("%q of %q: got %t", tt.want, tt.output, got)
		}
	}
}
