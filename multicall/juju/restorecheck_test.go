package juju

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/backupfile"
)

// TestRestoreCheckRefusesWhatRestoreDoes checks that restore --check refuses the same files as restore,
// with the same message.
func TestRestoreCheckRefusesWhatRestoreDoes(t *testing.T) {
	whole := backupfile.Header{Kind: backupfile.Environment, Name: "prod", UUID: "u", StateFormat: state.FormatVersion}
	newer := whole
	newer.StateFormat++
	environment := func(name string) []backupfile.Key {
		return []backupfile.Key{{Key: "environment", Value: []byte(`{"uuid":"u","name":"` + name + `"}`)}}
	}
	for _, test := range []struct {
		name   string
		header backupfile.Header
		keys   []backupfile.Key
	}{
		{"no environment", whole, nil},
		{"of a format to come", newer, environment("prod")},
		{"a header of another environment", whole, environment("other")},
		{"a key that no backup has", whole, append(environment("prod"), backupfile.Key{Key: "format", Value: []byte(`{"version":1}`)})},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			w := backupfile.NewWriter(&b)
			if err := w.AddKeys(test.keys); err != nil {
				t.Fatal(err)
			}
			test.header.Keys = len(test.keys)
			if err := w.Close(test.header); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "backup.zip")
			if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			run := func(cmd restoreCmd) string {
				var out bytes.Buffer
				o := &operator{
					ctx: t.Context(), home: home.Home{Dir: t.TempDir()}, name: "restored",
					streams: console.Streams{Out: &out, Err: &out},
				}
				err := cmd.Run(o)
				if err == nil {
					t.Fatalf("%+v is not refused: %s", cmd, out.String())
				}
				return err.Error()
			}

			checked, restored := run(restoreCmd{File: file, Check: true}), run(restoreCmd{File: file})
			if checked != restored {
				t.Errorf("--check says %q, and restore %q", checked, restored)
			}
		})
	}
}
