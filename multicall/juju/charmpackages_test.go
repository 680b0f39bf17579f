package juju

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
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
			charm := fstest.MapFS{"requirements.txt": {Data: []byte(requirements)}}
			for _, file := range tt.files {
				charm[file] = &fstest.MapFile{}
			}
			if diff := cmp.Diff(tt.want, missingPackages(charm)); diff != "" {
				t.Error(diff)
			}
		})
	}

	if got := missingPackages(fstest.MapFS{"src/charm.py": {}}); len(got) > 0 {
		t.Errorf("without requirements.txt: %q", got)
	}
}
