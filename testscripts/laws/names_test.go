package laws

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/multicall"
)

// TestNamesOfCommands compares two lists of names with the table of applets: the names that shells complete,
// and the names that a package links in /usr/bin. A new applet is easily forgotten in one of them.
func TestNamesOfCommands(t *testing.T) {
	var want []string
	for _, a := range multicall.Applets() {
		switch {
		case a.Summary == "": // a hook tool
		case strings.HasPrefix(a.Name, "bijou-provider-"): // called by the provisioner
		case slices.Contains([]string{"juju-exec", "juju-run", "jujud"}, a.Name): // called by charms
		default:
			want = append(want, a.Name)
		}
	}

	lists := map[string]string{
		"../../multicall/completion/bash": `(?m)^complete .* -F _bijou (.*)$`,
		"../../multicall/completion/zsh":  `(?m)^(?:#compdef|\tcompdef _bijou) (.*)$`,
		"../../multicall/completion/fish": `(?m)^for name in (.*)$`,
		"../../.ci/package":               `(?m)^names=\((.*)\)$`,
	}
	for file, pattern := range lists {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
			if len(found) == 0 {
				t.Fatal("there is no list of names")
			}

			for _, list := range found {
				names := strings.Fields(list[1])
				slices.Sort(names)
				if diff := cmp.Diff(want, names); diff != "" {
					t.Errorf("names (-applets +listed):\n%s", diff)
				}
			}
		})
	}
}
