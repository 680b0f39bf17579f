package recipes

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/testscripts/kit/script"
)

// TestMain lets this binary act as every applet.
func TestMain(m *testing.M) {
	script.Main(m, 2, map[string]func(){"make-secret-due": script.MakeSecretDue})
}

// TestScripts runs every *.txtar in this directory over each store that processes can share. EXAMPLES
// is the directory of the examples.
func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../../docs/examples")
	if err != nil {
		t.Fatal(err)
	}
	script.Run(t, script.Extras{Setup: func(env *testscript.Env) { env.Setenv("EXAMPLES", examples) }})
}
