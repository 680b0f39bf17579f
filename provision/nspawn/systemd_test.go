package nspawn

import (
	"strings"
	"testing"
)

// TestRun checks that the output of a program that succeeds contains no warnings from stderr, and that
// an error contains both outputs.
func TestRun(t *testing.T) {
	if out, err := runProgram(t.Context(), "sh", "-c", "echo odd >&2; echo active"); out != "active" || err != nil {
		t.Errorf("answer %q, error %v", out, err)
	}
	if _, err := runProgram(t.Context(), "sh", "-c", "echo odd >&2; echo no; exit 1"); err == nil || !strings.HasSuffix(err.Error(), ": odd\nno") {
		t.Errorf("error %v", err)
	}
}
