package machines

import (
	"os/exec"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// buildProvider FILE: builds the sample provider.
func buildProvider(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: provider FILE")
	}
	build := exec.Command("go", "build", "-o", ts.MkAbs(args[0]), ".")
	build.Dir = filepath.Join("..", "..", "fakes", "sampleprovider")
	if out, err := build.CombinedOutput(); err != nil {
		ts.Fatalf("cannot build the sample provider: %v\n%s", err, out)
	}
}
