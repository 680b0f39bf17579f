package operator

import (
	"testing"

	"bijou/testscripts/kit/script"
	"bijou/testscripts/kit/terminal"
)

// TestMain lets this binary act as every applet, and as the program that runs others on a terminal.
func TestMain(m *testing.M) { script.Main(m, 2, map[string]func(){"terminal": terminal.Main}) }

// TestScripts runs every *.txtar in this directory over each store that processes can share.
func TestScripts(t *testing.T) {
	script.Run(t, script.Extras{})
}
