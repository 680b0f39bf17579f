package charm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAssumes(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string // the requirements that JujuVersion does not meet
	}{
		{"assumes: [juju]", nil},
		{"assumes: [juju >= 3, juju>=3.6, juju >= 3.6.21, juju < 3.6.28, juju < 4, juju >= 3.5-beta1]", nil},
		{"assumes: [juju >= 3.6.28, juju < 3.6, juju < 3.6.27, juju >= 3.10]", []string{"juju >= 3.6.28", "juju < 3.6", "juju < 3.6.27", "juju >= 3.10"}},
		{"assumes: [storage, juju >= 2.9]", []string{"storage"}},
		{"assumes: [{any-of: [juju >= 4, {all-of: [juju >= 3.1, juju < 4]}]}]", nil},
		{"assumes:\n- any-of: [juju >= 4, popcorn]\n- all-of:\n  - juju >= 3\n  - popcorn >= 1.2\n  - any-of: [a, {all-of: [b, c]}]", []string{"(juju >= 4 or popcorn)", "popcorn >= 1.2", "(a or (b and c))"}},
		{"min-juju-version: 2.10", nil},
		{"min-juju-version: 3.7", []string{"juju >= 3.7"}},
		{"min-juju-version: 2.0-beta3\nassumes: [a]", []string{"a"}},
	} {
		m, err := ParseMeta([]byte(tiny + tt.text + "\n"))
		must(t, err)
		stored, err := json.Marshal(m)
		must(t, err)
		var again Meta
		must(t, json.Unmarshal(stored, &again))
		got, _ := Unsupported(&again, JujuVersion)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", tt.text, diff)
		}
	}
	for _, bad := range []string{"[juju > 3]", "[juju >= x]", "[{any-of: []}]", "[{all-of: [a], any-of: [b]}]", "[[a]]", "[{}]", "[Juju]", "juju", "[&a {any-of: [*a]}]", nestedAliases(), repeatedAliases()} {
		if _, err := ParseMeta([]byte(tiny + "assumes: " + bad + "\n")); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("assumes %s: got %v", bad, err)
		}
	}
}

func TestKubernetes(t *testing.T) {
	for text, want := range map[string]string{
		"containers: {web: {resource: image}}":                                   "containers",
		"assumes: [juju >= 2, k8s-api]":                                          "assumes k8s-api",
		"assumes: [{all-of: [k8s-api >= 1.20]}]":                                 "assumes k8s-api >= 1.20",
		"assumes: [{any-of: [k8s-api, juju >= 2]}]":                              "",
		"series: [kubernetes]":                                                   "series kubernetes",
		"series: [jammy, kubernetes]":                                            "",
		"extensions: [flask-framework]\nbase: ubuntu@22.04\nplatforms: {amd64:}": "flask-framework",
	} {
		_, err := ParseMeta([]byte(tiny + text + "\n"))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), "is for Kubernetes ("+want+")") {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// nestedAliases returns a list that is short, but whose aliases stand for 10^10 features.
func nestedAliases() string {
	list := "juju"
	for n := range 10 {
		list = fmt.Sprintf("&a%d {any-of: [%s%s]}", n, list, strings.Repeat(fmt.Sprintf(", *a%d", n-1), 9*min(n, 1)))
	}
	return "[" + list + "]"
}

// repeatedAliases returns a list of entries that are small each, and together stand for a million features.
func repeatedAliases() string {
	entry := "&a {any-of: [juju" + strings.Repeat(", juju", 900) + "]}"
	return "[" + entry + strings.Repeat(", *a", 1100) + "]"
}
