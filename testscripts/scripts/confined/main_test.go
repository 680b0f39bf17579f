package confined

import (
	"testing"

	"bijou/testscripts/kit/script"
)

// TestMain makes this binary every applet.
func TestMain(m *testing.M) {
	script.Main(m, 2, map[string]func(){"make-secret-due": script.MakeSecretDue})
}

// TestScripts runs every *.txtar beside it, and those of other suites that use most of what agents do, over each store
// that processes can share.
func TestScripts(t *testing.T) {
	script.RunConfined(t, script.Extras{
		Refused: map[string][]string{"secrets-by-agents": {"get secrets/"}, "machines-apart": {"get secrets/"}},
	}, "../agent/leader", "../hooktools/run", "../relations/application-settings", "../relations/machines-apart",
		"../relations/subordinate", "../units/actions", "../units/resources", "../units/secrets", "../units/storage",
		"../upgrades/upgrade-charm")
}
