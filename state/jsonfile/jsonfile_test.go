package jsonfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWrite checks that a write keeps the members that a newer binary has put into a file.
func TestWrite(t *testing.T) {
	type document struct {
		Name  string `json:"name,omitempty"`
		Inner struct {
			Size int `json:"size"`
		} `json:"inner"`
	}
	for _, test := range []struct{ name, there, want string }{
		{"no file", "", `{"name":"b","inner":{"size":0}}`},
		{"all is known", `{"name":"a","inner":{"size":1}}`, `{"name":"b","inner":{"size":0}}`},
		{"a newer binary's", `{"name":"a","inner":{"size":1,"unit":"MiB"},"since":"now"}` + "\n", `{"name":"b","inner":{"size":0,"unit":"MiB"},"since":"now"}`},
		{"half of a file", `{"name":"a","since`, `{"name":"b","inner":{"size":0}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "record.json")
			if test.there != "" {
				if err := os.WriteFile(path, []byte(test.there), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := Write(path, document{Name: "b"}); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if diff := cmp.Diff(test.want+"\n", string(data)); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
	t.Run("a pipe, which nobody writes to", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "record.json")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Write(path, document{}); err != nil {
			t.Fatal(err)
		}
	})
}
