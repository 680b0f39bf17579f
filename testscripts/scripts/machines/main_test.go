package machines

import (
	"fmt"
	"os"
	"testing"

	"bijou/provision/plugin"
	"bijou/testscripts/fakes/dummy"
	"bijou/testscripts/kit/script"
)

// TestMain lets this binary act as every applet, and as the process of the dummy provider.
func TestMain(m *testing.M) {
	script.Main(m, 2, map[string]func(){plugin.Prefix + dummy.Name: serveDummy})
}

// serveDummy is the process of the dummy provider, with which any script can bootstrap.
func serveDummy() {
	if err := plugin.Serve(dummy.Make); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestScripts runs every *.txtar in this directory over each store that processes can share.
func TestScripts(t *testing.T) {
	script.Run(t, script.Extras{Commands: map[string]script.Command{"provider": buildProvider}})
}
