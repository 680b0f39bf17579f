package laws

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLogMessages checks that each message that a test looks for in a log, as in msg="hook is done", is one of the
// product's. A count of a message that nothing logs any longer is always 0. slog quotes only messages of
// several words, so a quoted word never matches either.
func TestLogMessages(t *testing.T) {
	var product strings.Builder
	tests := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}

		file := strings.TrimPrefix(path, "../../")
		isScript := strings.HasSuffix(file, ".txtar")
		isGo := strings.HasSuffix(file, ".go")
		isTest := strings.HasPrefix(file, "testscripts/") || strings.HasSuffix(file, "_test.go")
		if !isScript && !isGo || strings.HasPrefix(file, "testscripts/laws/") {
			return nil
		}

		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if isScript || isTest {
			tests[file] = string(text)
		} else {
			product.Write(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	quoted := regexp.MustCompile(`msg=\\?"([a-z][a-z ';:,-]+)`)
	n := 0
	for file, text := range tests {
		for _, match := range quoted.FindAllStringSubmatch(text, -1) {
			message := match[1]
			n++
			if !strings.Contains(message, " ") {
				t.Errorf("%s looks for msg=%q, but a log has no quotes around one word", file, message)
			}
			if !strings.Contains(product.String(), `"`+message) {
				t.Errorf("%s looks for msg=%q, which nothing logs", file, message)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d messages found in tests", n)
	}
}
