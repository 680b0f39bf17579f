package author

import (
	"bytes"
	"strings"
	"testing"

	"bijou/multicall/console"
)

// TestRefuseMissing checks that users of charmcraft get the matching command in a hint, with the names
// that they gave.
func TestRefuseMissing(t *testing.T) {
	for line, want := range map[string]string{
		"init --profile simple --name web": "charm create web --lang python",
		"init web2":                        "charm create web2 --lang python",
		"init":                             "charm create NAME --lang python",
		"new web":                          "charm create web --lang python",
		"pack":                             "juju deploy .",
		"pack -p web":                      "juju deploy ./web",
		"build /srv/web":                   "juju deploy /srv/web",
		"lint web":                         "charm proof ./web",
		"analyze x;y":                      "charm proof .",
		"analyze a;b=c":                    "charm proof .",
		"status a;b=c":                     "to see what the store has: juju info NAME",
		"init --name=a;b web":              "charm create web --lang python",
		"pack --project-dir=web":           "juju deploy ./web",
		"clean":                            "charm proof .",
		"upload web.charm --release edge":  "juju deploy .",
		"release web --revision=3":         "juju deploy ./web",
		"status web":                       "to see what the store has: juju info web",
		"resources web":                    "to see what the store has: juju charm-resources web",
		"fetch-lib charms.a.v0.b":          "to check their calls of hook tools: charm proof .",
		"--version":                        "bijou version",
		"create web":                       "",
		"--help":                           "",
	} {
		t.Run(line, func(t *testing.T) {
			var stderr bytes.Buffer
			code := console.Report(&stderr, refuseMissing(strings.Fields(line)))
			_, got, _ := strings.Cut(strings.TrimSuffix(stderr.String(), "\n"), "\nhint: ")
			if got != want || want != "" && code != console.ExitUsage {
				t.Errorf("exit %d, got %q, want %q", code, got, want)
			}
		})
	}
}
