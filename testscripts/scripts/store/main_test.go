package store

import (
	"testing"

	"bijou/testscripts/kit/script"
)

// TestMain lets this binary act as every applet.
func TestMain(m *testing.M) { script.Main(m, 2, nil) }

// TestScripts runs every *.txtar in this directory over each store that processes can share.
func TestScripts(t *testing.T) {
	var w storeWorld
	script.Run(t, script.Extras{Commands: map[string]script.Command{"charmhub": w.run}, Setup: setHostBase})
}
