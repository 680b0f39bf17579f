package release

import (
	"errors"
	"strings"
	"testing"
)

func TestParseIndex(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		kind       Kind
		want       string // the text of the error; "" if the index is valid
	}{
		{"nothing published", `{"format": 1, "releases": []}`, "", ""},
		{"a field of a later version", `{"format": 1, "made-by": "x", "releases": [{"tag": "release-1.0", "files": [{"name": "a", "size": 1, "x": 2}]}]}`, "", ""},
		{"a login page", " <!DOCTYPE html>", NoReleases, "got a web page instead of index.json"},
		{"nothing", "", NoReleases, "cannot read index.json: unexpected end"},
		{"half of it", `{"format": 1, "rel`, NoReleases, "cannot read index.json"},
		{"another JSON", `{"message": "Not Found"}`, NoReleases, "its format is missing"},
		{"a list", `[]`, NoReleases, "cannot read index.json"},
		{"a later format", `{"format": 2, "releases": {}}`, LaterFormat, "only a later version of neco can read"},
		{"a tag that leads elsewhere", `{"format": 1, "releases": [{"tag": "../release-1.0"}]}`, NoReleases, "is not a tag"},
		{"a file that leads elsewhere", `{"format": 1, "releases": [{"tag": "r-1", "files": [{"name": "a/b"}]}]}`, NoReleases, "cannot be the name of a file"},
		{"a hidden file", `{"format": 1, "releases": [{"tag": "r-1", "files": [{"name": ".."}]}]}`, NoReleases, "cannot be the name of a file"},
		{"a negative size", `{"format": 1, "releases": [{"tag": "r-1", "files": [{"name": "a", "size": -1}]}]}`, NoReleases, "is negative"},
		{"a tag twice", `{"format": 1, "releases": [{"tag": "r-1"}, {"tag": "r-1"}]}`, NoReleases, "twice"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseIndex([]byte(tt.text))
			failed, _ := errors.AsType[SourceError](err)
			if failed.Kind != tt.kind || (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, of kind %q", err, failed.Kind)
			}
		})
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"format": 1, "releases": [{"tag": "release-1.0", "files": [{"name": "a", "size": 1}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := parseIndex(data)
		if err != nil {
			return
		}
		for _, r := range x.Releases {
			for _, file := range r.Files {
				if strings.ContainsAny(r.Tag+file.Name, "/\\") || r.Tag == ".." || file.Name == ".." {
					t.Errorf("%q, %q", r.Tag, file.Name)
				}
			}
		}
	})
}
