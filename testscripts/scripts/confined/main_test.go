package confined

import (
	"testing"

	"bijou/testscripts/kit/script"
)

// TestMain lets this binary act as every applet.
func TestMain(m *testing.M) {
	script.Main(m, 2, map[string]func(){"make-secret-due": script.MakeSecretDue})
}

// TestScripts runs every *.txtar in this directory, and scripts of other suites that cover most operations of
// agents, over each store that processes can share.
func TestScripts(t *testing.T) {
	script.RunConfined(t, script.Extras{
		Refused: map[string][]string{"secrets-by-agents": {"get secrets/"}, "machines-apart": {"get secrets/"}},
	}, "../agent/leader", "../hooktools/run", "../relations/application-settings", "../relations/machines-apart",
		"../relations/subordinate", "../units/actions", "../units/resources", "../units/secrets", "../units/storage",
		"../upgrades/upgrade-charm")
}
