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
  two: {shared: true, multiple: {range: 2}}
  may: {type: block, multiple: {range: 0-}, minimum-size: 1G}
  ro: {type: filesystem, read-only: true, multiple: {range: 0-1}}
`))
	must(t, err)
	required, optional := Unsupported(m, JujuVersion)
	if diff := cmp.Diff([]string{`storage "some" (of type block)`, `storage "two" (shared by all units)`}, required); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`storage "may" (of type block)`, `storage "ro" (read-only without a location)`}, optional); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"{s: {multiple: {range: many}}}", "{s: {multiple: {range: 3-2}}}", "{s: {location: here}}", "{s: {location: /..}}", "{s: {minimum-size: big}}", "{../s: {type: filesystem}}", "{s: {multiple: {range: -1}}}", "[s]"} {
		if _, err := ParseMeta([]byte(tiny + "storage: " + bad + "\n")); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("storage %s: got %v", bad, err)
		}
	}
}

func TestDirective(t *testing.T) {
	for text, want := range map[string]Directive{
		"data":                   {},
		"data=rootfs,10G,2":      {"rootfs", 10 << 10, 2},
		"data=3,1.5T,tmpfs":      {"tmpfs", 3 << 19, 3},
		"data=host:/srv/big,5MB": {"host:/srv/big", 5, 0},
	} {
		name, d, err := ParseDirective(text)
		must(t, err)
		if diff := cmp.Diff(want, d); diff != "" || name != "data" {
			t.Errorf("%s: %s %s", text, name, diff)
		}
		if _, again, err := ParseDirective("data=" + d.String()); d != (Directive{}) && (err != nil || again != d) {
			t.Errorf("%s is written %q, and read as %v %v", text, d, again, err)
		}
	}
	for _, bad := range []string{"", "=1G", "Data", "data=", "data=ebs", "data=0", "data=00", "data=0M", "data=51", "data=-1", "data=1G,2G", "data=1,2", "data=host:srv", "data=host:/srv/..", "data=rootfs,tmpfs", "a/b=1G"} {
		if name, d, err := ParseDirective(bad); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %s %v %v", bad, name, d, err)
		}
	}
}

// TestDirectiveNamesTheMistake checks that a second pool, size or count is not called an unknown word.
func TestDirectiveNamesTheMistake(t *testing.T) {
	for text, want := range map[string]string{
		"data=10G,20G":      `storage "data": "20G": give at most one pool, one size and one count`,
		"data=rootfs,5,6":   `storage "data": "6": give at most one pool, one size and one count`,
		"data=rootfs,tmpfs": `storage "data": "tmpfs": give at most one pool, one size and one count`,
		"data=1G,3,1G":      `storage "data": "1G": give at most one pool, one size and one count`,
		"data=00":           `storage "data": "00" is neither a pool, a size nor a count`,
		"data=tmpfs,0M":     `storage "data": "0M" is neither a pool, a size nor a count`,
	} {
		t.Run(text, func(t *testing.T) {
			if _, _, err := ParseDirective(text); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
