package juju

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"bijou/multicall/console"
	"bijou/state/charm"
)

// TestMissingPackages checks which packages a source tree lacks, by the files that it has.
func TestMissingPackages(t *testing.T) {
	const requirements = "# What the charm imports\nops >= 2.0, < 3\nPyYAML==6.0 ; python_version > '3.8'\n-r more.txt\n--index-url x\nzope.event[test]\n\nops\ngit+https://example.org/x\nhttps://example.org/y.whl\n"
	tests := []struct {
		name  string
		files []string
		want  []string
	}{
		{"sources", []string{"src/charm.py"}, []string{"PyYAML", "ops", "zope.event"}},
		{"a directory of packages", []string{"src/charm.py", "venv/ops/model.py", "venv/PyYAML-6.0.dist-info/RECORD"}, []string{"zope.event"}},
		{"a virtual environment", []string{"src/charm.py", "venv/lib/python3.12/site-packages/zope_event-5.0.dist-info/RECORD",
			"venv/lib/python3.12/site-packages/ops-2.17.0.dist-info/RECORD", "lib/pyyaml.py"}, nil},
		{"a longer name", []string{"src/charm.py", "venv/ops_tracing-1.0.dist-info/RECORD"}, []string{"PyYAML", "ops", "zope.event"}},
		{"its own dispatch", []string{"src/charm.py", "dispatch"}, nil},
		{"hooks", []string{"hooks/install"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			files := fstest.MapFS{"requirements.txt": {Data: []byte(requirements)}}
			for _, file := range tt.files {
				files[file] = &fstest.MapFile{}
			}
			if diff := cmp.Diff(tt.want, missingPackages(files)); diff != "" {
				t.Error(diff)
			}
		})
	}

	if got := missingPackages(fstest.MapFS{"src/charm.py": {}}); len(got) > 0 {
		t.Errorf("without requirements.txt: %q", got)
	}
}

// TestPackagesHint checks that the hint names the charm's directory, quoted for a shell, but never the directory of
// an unpacked archive, which is removed.
func TestPackagesHint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my charm")
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "src"), 0o755),
		os.WriteFile(filepath.Join(dir, "src", "charm.py"), nil, 0o755),
		os.WriteFile(filepath.Join(dir, "requirements.txt"), []byte("ops\n"), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}

	hint := fmt.Sprintf("hint: to add them to the charm: python3 -m pip install --target '%s' -r '%s'\n",
		filepath.Join(dir, "venv"), filepath.Join(dir, "requirements.txt"))
	for _, tt := range []struct {
		what    string
		local   bool
		archive string
		want    string
	}{
		{"a directory", true, "", hint},
		{"an archive", true, "my.charm", ""},
		{"from the store", false, "", ""},
	} {
		t.Run(tt.what, func(t *testing.T) {
			r := &charmRelease{found: charm.Found{Path: dir, Archive: tt.archive}}
			if tt.local {
				r.File.Charm = &r.found
			}

			var errs bytes.Buffer
			(&operator{streams: console.Streams{Err: &errs}}).notePackages(r)
			warning, rest, _ := strings.Cut(errs.String(), "\n")
			if !strings.HasPrefix(warning, "warning: the charm does not contain these packages") || rest != tt.want {
				t.Errorf("got %q, want the warning and %q", errs.String(), tt.want)
			}
		})
	}
}
