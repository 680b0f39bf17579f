package laws

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"bijou/state/metrics"
)

// TestMetricsAreExplained checks that each metric of a daemon has a line of help, and is in
// docs/how-to/watch-it.md.
func TestMetricsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/watch-it.md")
	if err != nil {
		t.Fatal(err)
	}
	measured := regexp.MustCompile(`"((?:bijou|neco)_[a-z]+(?:_[a-z]+)*)"`)
	found := 0
	for _, file := range sources(t) {
		if strings.Contains(file, "/testscripts/") || strings.HasSuffix(file, "/state/metrics/help.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range measured.FindAllStringSubmatch(string(text), -1) {
			name := m[1]
			found++
			if metrics.Help(name) == "" {
				t.Errorf("%s measures %s, of which state/metrics has no help", file, name)
			}
			// The page abbreviates related metrics, as in `neco_server_present`, `_finished`.
			_, rest, _ := strings.Cut(strings.TrimPrefix(name, "neco_"), "_")
			if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`_"+rest+"`") {
				t.Errorf("docs/how-to/watch-it.md does not say what %s is", name)
			}
		}
	}
	if found < 20 {
		t.Errorf("%d metrics were found: the rule looks past what it is about", found)
	}
}
