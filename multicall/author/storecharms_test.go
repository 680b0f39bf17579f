package author

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFindWishes checks which lines of a script deploy a charm of the store, and which charm.
func TestFindWishes(t *testing.T) {
	for line, want := range map[string]string{
		"juju deploy postgresql":                                "postgresql",
		"juju deploy ch:postgresql db":                          "postgresql",
		"juju deploy postgresql --channel 14/stable db -n 2":    "postgresql --channel 14/stable",
		"juju deploy -n 2 --channel=edge postgresql":            "postgresql --channel edge",
		"juju deploy --force postgresql --revision 7":           "postgresql --revision 7",
		"[isolated] juju deploy postgresql":                     "postgresql",
		"? juju deploy postgresql":                              "postgresql",
		"juju deploy --config a=b --trust postgresql":           "postgresql",
		"juju deploy --quiet postgresql":                        "postgresql",
		"juju deploy -q postgresql db":                          "postgresql",
		"juju deploy -n2 postgresql":                            "postgresql",
		"juju deploy -n=2 postgresql":                           "postgresql",
		"juju deploy --constraints 'mem=1G cores=2' postgresql": "postgresql",
		"juju deploy --config '' 'postgresql' # a comment":      "postgresql",
		"juju deploy .":                                         "",
		"juju deploy . blog":                                    "",
		"juju deploy ./postgresql":                              "",
		"juju deploy local:precise/db":                          "",
		"juju deploy bundle.yaml":                               "",
		"juju deploy --repository charms postgresql":            "",
		"! juju deploy postgresql":                              "",
		"# juju deploy postgresql":                              "",
		"stdout 'juju deploy postgresql'":                       "",
		"juju deploy":                                           "",
	} {
		t.Run(line, func(t *testing.T) {
			got := ""
			for _, w := range findWishes(line + "\n") {
				got += w.String()
			}
			if got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// TestReplaceByFile checks how the script calls juju with the downloaded files.
func TestReplaceByFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"db_r7.charm", "resource_site_r1_site.bin", "resource_my-file_r2"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	file := filepath.Join(dir, "db_r7.charm")
	site := "site=" + filepath.Join(dir, "resource_site_r1_site.bin")
	mine := "my-file=" + filepath.Join(dir, "resource_my-file_r2")
	j := storeJuju{folders: map[string]string{"db --channel edge": dir, "db": dir}}

	for what, tt := range map[string]struct{ args, want []string }{
		"by name":         {[]string{"deploy", "db"}, []string{"deploy", file, "db", "--resource", mine, "--resource", site}},
		"with a name":     {[]string{"deploy", "-n", "2", "db", "own", "--channel", "edge"}, []string{"deploy", file, "own", "-n", "2", "--resource", mine, "--resource", site}},
		"with a resource": {[]string{"deploy", "ch:db", "--resource", "site=x"}, []string{"deploy", file, "db", "--resource", "site=x", "--resource", mine}},
		"with an option like a resource": {
			[]string{"deploy", "db", "--config", "web-site=x", "--config", "site=x"},
			[]string{"deploy", file, "db", "--config", "web-site=x", "--config", "site=x", "--resource", mine, "--resource", site},
		},
		"with a joined resource": {
			[]string{"deploy", "db", "--resource=site=x"},
			[]string{"deploy", file, "db", "--resource=site=x", "--resource", mine},
		},
		"with a name after options": {
			[]string{"deploy", "-n2", "db", "--channel", "edge", "--quiet", "own", "--trust"},
			[]string{"deploy", file, "own", "-n2", "--quiet", "--trust", "--resource", mine, "--resource", site},
		},
		"another channel": {[]string{"deploy", "db", "--channel=beta"}, []string{"deploy", "db", "--channel=beta"}},
		"a folder":        {[]string{"deploy", "."}, []string{"deploy", "."}},
		"another command": {[]string{"status", "db"}, []string{"status", "db"}},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, j.replace(tt.args)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFolderName checks that releases of a charm with other resources have directories of their own.
func TestFolderName(t *testing.T) {
	one := pin{Revision: 7, SHA256: "0123456789abcdef0123", Resources: map[string]int{"site": 1, "image": 2}}
	other := one
	other.Resources = map[string]int{"site": 2, "image": 2}
	bare := one
	bare.Resources = nil

	if got, want := folderName("db", bare), "db_r7_0123456789abcdef"; got != want {
		t.Errorf("without resources: %q, want %q", got, want)
	}
	if a, b := folderName("db", one), folderName("db", other); a == b || a != folderName("db", one) {
		t.Errorf("with resources: %q and %q", a, b)
	}
}
