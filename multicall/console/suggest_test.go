package console

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"relation-get", "relation-set", "relation-list", "juju", "juju-log", "unit-get", "unit-set", "web", "dba", "database"}
	tests := []struct{ name, want string }{
		{"relation-gte", "relation-get"},
		{"relation-ste", "relation-set"},
		{"relationget", "relation-get"},
		{"jujulog", "juju-log"},
		{"jujy", "juju"},
		{"x", ""},
		{"", ""},
		{"kubectl", ""},
		{"unit-vet", ""},
		{"db", ""},
		{"wbe", "web"},
		{"wxy", ""},
		{"dataabse", "database"},
		{"dtabsae", "database"},
		{"dxtxbxse", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := NearestWord(tt.name, words); got != tt.want {
				t.Errorf("nearest to %q is %q, want %q", tt.name, got, tt.want)
			}
		})
	}
}

// TestOnlySlip checks that a word is certain only if no different word can be meant.
func TestOnlySlip(t *testing.T) {
	tests := []struct {
		name  string
		words []string
		want  string
	}{
		{"naem", []string{"name", "type"}, "name"},
		{"naem", []string{"name", "name"}, "name"},
		{"databse", []string{"database", "datebase"}, ""},
		{"min", []string{"max"}, ""},
		{"stat", []string{"start", "stop"}, "start"},
		{"sto", []string{"stop", "sta"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := OnlySlip(tt.name, tt.words); got != tt.want {
				t.Errorf("the only slip of %q in %q is %q, want %q", tt.name, tt.words, got, tt.want)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	tests := []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"kitten", "sitting", 3},
	}
	for _, tt := range tests {
		if got := editDistance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance of %q and %q is %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
