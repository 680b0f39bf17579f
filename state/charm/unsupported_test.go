package charm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissing(t *testing.T) {
	m, err := ParseMeta([]byte(tiny + `storage:
  always: {type: filesystem}
  some: {type: block, multiple: {range: 2+}}
  two: {multiple: {range: 2}}
  may: {type: filesystem, multiple: {range: 0-}, minimum-size: 1G}
  mayone: {multiple: {range: 0-1}}
`))
	must(t, err)
	required, optional := Unsupported(m, JujuVersion)
	want := []string{`storage "always"`, `storage "some"`, `storage "two"`}
	if diff := cmp.Diff(want, required); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`storage "may"`, `storage "mayone"`}, optional); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"{s: {multiple: {range: many}}}", "{s: {multiple: {range: -1}}}", "[s]"} {
		if _, err := ParseMeta([]byte(tiny + "storage: " + bad + "\n")); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("storage %s: got %v", bad, err)
		}
	}
}
