package pages

import (
	"testing"

	"bijou/testscripts/kit/script"
)

// TestMain lets this binary act as every applet.
func TestMain(m *testing.M) { script.Main(m, 2, nil) }

// TestScripts runs every *.txtar in this directory over each store that processes can share.
func TestScripts(t *testing.T) {
	script.Run(t, script.Extras{Commands: map[string]script.Command{"ownetcd": new(ownEtcd).run}})
}

// TestHosts follows the pages whose commands create their own hosts.
func TestHosts(t *testing.T) {
	script.RunOnce(t, script.Extras{Commands: map[string]script.Command{"hostworld": hostWorld}}, "alone/boot-servers.txtar")
}
