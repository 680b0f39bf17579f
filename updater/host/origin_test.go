package host

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOriginSurvivesFailedInstallations checks that the running program finds its origin, although other releases
// could not be installed, and one of them was tried again and again.
func TestOriginSurvivesFailedInstallations(t *testing.T) {
	dir := t.TempDir()
	h, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	install := func(version string) (program string) {
		t.Helper()
		program = filepath.Join(dir, version)
		if err := os.WriteFile(program, []byte("program of "+version), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := h.keepOrigin(Package{Version: version, Sums: "sums of " + version}, program); err != nil {
			t.Fatal(err)
		}
		return program
	}

	running := install("1.0")
	for range 2 * maxOrigins {
		install("2.0")
	}
	newest := install("3.0")
	for version, program := range map[string]string{"1.0": running, "3.0": newest} {
		got, err := InstalledSums(dir, program, version)
		if want := "sums of " + version; got != want || err != nil {
			t.Errorf("the program of %s has %q, %v; want %q", version, got, err, want)
		}
	}
}
