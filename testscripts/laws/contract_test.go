package laws

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestContract compares docs/dev/contract.md with the source: each text that other programs read must
// be in the file that the page names.
func TestContract(t *testing.T) {
	page, err := os.ReadFile("../../docs/dev/contract.md")
	if err != nil {
		t.Fatal(err)
	}

	rows := contractRows(string(page))
	if len(rows) < 15 {
		t.Fatalf("docs/dev/contract.md has only %d rows", len(rows))
	}
	for _, row := range rows {
		source, err := os.ReadFile(filepath.Join("../..", row.file))
		if err != nil {
			t.Errorf("docs/dev/contract.md: %v", err)
			continue
		}
		if !strings.Contains(string(source), row.text) {
			t.Errorf("%s no longer has %q, which other programs read: docs/dev/contract.md says who", row.file, row.text)
		}
	}
}

type contractRow struct{ text, file string }

// contractRows reads the rows of the page's tables. A text keeps its leading and trailing spaces.
func contractRows(page string) (rows []contractRow) {
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| .+ \\|$")
	for _, match := range row.FindAllStringSubmatch(page, -1) {
		rows = append(rows, contractRow{text: match[1], file: match[2]})
	}
	return rows
}
