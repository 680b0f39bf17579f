package juju

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSeriesThatCannotBeMade checks that a missing requirement of the host is reported before anything is
// stored. With --force, or if no machine is needed, it is not reported.
func TestSeriesThatCannotBeMade(t *testing.T) {
	const refusal = `machines of the series "unmakeable" cannot be created: this host has no keyring: apt-get install it`
	for name, tt := range map[string]struct {
		args    []string
		refused bool
	}{
		"deploy":               {[]string{"deploy", "CHARM", "--series", "unmakeable"}, true},
		"by the charm":         {[]string{"deploy", "OTHER"}, true},
		"a machine":            {[]string{"add-machine", "--series", "unmakeable"}, true},
		"a bundle":             {[]string{"deploy", "BUNDLE"}, true},
		"a bundle, rehearsed":  {[]string{"deploy", "BUNDLE", "--dry-run"}, true},
		"a bundle, forced":     {[]string{"deploy", "BUNDLE", "--force"}, false},
		"forced":               {[]string{"deploy", "CHARM", "--series", "unmakeable", "--force"}, false},
		"to one that is there": {[]string{"deploy", "CHARM", "second", "--series", "unmakeable", "--to", "1"}, false},
		"another series":       {[]string{"deploy", "CHARM", "--series", "jammy"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t)
			w.mustRun("bootstrap", "--provider", "near", "--default-series", "jammy")
			other := w.writeCharm("other", "series: [unmakeable]\n")
			file := filepath.Join(t.TempDir(), "bundle.yaml")
			text := "applications:\n  fine: {charm: '" + w.writeCharm("fine", "") + "'}\n  late: {charm: '" + other + "'}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			words := strings.NewReplacer("CHARM", w.writeCharm("plain", ""), "OTHER", other, "BUNDLE", file)
			for i, word := range tt.args {
				tt.args[i] = words.Replace(word)
			}

			w.mustRun("deploy", w.writeCharm("first", ""), "--series", "unmakeable", "--force")
			before := statusWithoutTime(w)
			if !tt.refused {
				w.mustRun(tt.args...)
				return
			}
			w.mustFail(1, refusal, tt.args...)
			if after := statusWithoutTime(w); after != before {
				t.Errorf("something is stored:\n%s", after)
			}
		})
	}
}

// statusWithoutTime returns the status without the time of the status itself.
func statusWithoutTime(w *testEnv) string {
	return regexp.MustCompile(`(?m)^ *timestamp: .*$`).ReplaceAllString(w.status(), "")
}
