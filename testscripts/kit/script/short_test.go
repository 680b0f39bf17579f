package script

import (
	"os"
	"path/filepath"
	"testing"
)

// TestShortScriptsAreThere wants each script of -short to be there: one that was renamed would be
// left out without a word.
func TestShortScriptsAreThere(t *testing.T) {
	for _, name := range shortScripts() {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join("..", "..", "scripts", name+".txtar")); err != nil {
				t.Error(err)
			}
		})
	}
}
