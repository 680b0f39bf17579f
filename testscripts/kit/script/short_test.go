package script

import (
	"os"
	"path/filepath"
	"testing"
)

// TestShortScriptsAreThere checks that each script of -short exists, because a renamed one would be
// skipped silently.
func TestShortScriptsAreThere(t *testing.T) {
	for _, name := range shortScripts() {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join("..", "..", "scripts", name+".txtar")); err != nil {
				t.Error(err)
			}
		})
	}
}
