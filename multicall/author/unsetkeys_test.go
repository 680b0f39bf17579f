package author

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/multicall/author/proof"
	"bijou/state/status"
)

// TestUnsetKeys checks which reads of settings are named: those of hooks that have run, in a relation whose other side
// has made settings, but not this one.
func TestUnsetKeys(t *testing.T) {
	const journal = "blog/0 install\nblog/0 db-relation-changed mysql/0\n"
	const unset = `blog/0 db-relation-changed reads the key "hots" at hooks/all:5, which mysql has not set; it has set: host, version`
	made := map[string]string{"private-address": "10.0.0.1", "host": "x"}
	tests := []struct {
		name, key string
		hook      string
		made      map[string]string
		want      []string
	}{
		{"a wrong key", "hots", "db-relation-changed", made, []string{unset}},
		{"a key of the unit", "host", "db-relation-changed", made, nil},
		{"a key of the application", "version", "db-relation-changed", made, nil},
		{"an address", "public-address", "db-relation-changed", made, nil},
		{"a hook that has not run", "hots", "db-relation-broken", made, nil},
		{"a hook of a different relation", "hots", "cache-relation-changed", made, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			relations := []status.RelationDetail{{
				Endpoint: "db", Service: "mysql", AppData: map[string]string{"version": "8"},
				RelatedUnits: map[string]status.RelationData{"mysql/0": {Data: tt.made}},
			}}
			reads := []proof.Read{{File: "hooks/all", Line: 5, Key: tt.key, Hooks: []string{"install", tt.hook}}}
			if diff := cmp.Diff(tt.want, unsetKeys("blog/0", relations, reads, journal)); diff != "" {
				t.Error(diff)
			}

			// Before the other side has made any settings, none can be wrong.
			relations[0].AppData = nil
			relations[0].RelatedUnits["mysql/0"] = status.RelationData{Data: map[string]string{"private-address": "10.0.0.1"}}
			if early := unsetKeys("blog/0", relations, reads, journal); len(early) > 0 {
				t.Errorf("before any setting: %q", early)
			}
		})
	}
}
