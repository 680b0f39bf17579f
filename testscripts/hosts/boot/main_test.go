package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestMain lets this binary act also as the stand-ins.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "standin" {
		os.Exit(m.Run())
	}
	if err := standin(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
