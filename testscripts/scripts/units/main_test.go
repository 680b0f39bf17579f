package units

import (
	"testing"

	"bijou/testscripts/kit/script"
)

// TestMain lets this binary act as every applet.
func TestMain(m *testing.M) {
	script.Main(m, 2, map[string]func(){"make-secret-due": script.MakeSecretDue})
}

// TestScripts runs every *.txtar in this directory over each store that processes can share.
func TestScripts(t *testing.T) { script.Run(t, script.Extras{Asked: true}) }
