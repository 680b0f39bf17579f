package tools

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"mysql/0": true, "blog-0/12": true, "a1-b/7": true,
		"mysql": false, "mysql/": false, "/0": false, "mysql/01": false, "mysql/-1": false, "MySQL/0": false,
		"my_sql/0": false, "mysql-/0": false, "1a/0": false, "mysql/0/1": false, "": false, "a--b/0": false,
	} {
		t.Run(name, func(t *testing.T) {
			if got := isUnit(name); got != want {
				t.Errorf("isUnit(%q) = %v", name, got)
			}
		})
	}
	got := sortUnits([]string{"b/10", "b/9", "a/2", "b/9", "a-b/1"})
	if diff := cmp.Diff([]string{"a/2", "a-b/1", "b/9", "b/10"}, got); diff != "" {
		t.Errorf("sortUnits (-want +got):\n%s", diff)
	}
}
