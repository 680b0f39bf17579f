// Package applets lets a test binary act as every applet. With it a suite runs the same code as users do, in
// separate processes of the test binary.
package applets

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/multicall"
)

// Main is the main function of the tests. If the binary is called under the name of an applet in multicall's
// table, it acts as this applet. Under its own name it calls begin and runs the tests. Under any other name
// it exits with code 127, so that the suite does not run again. It does not return.
func Main(m *testing.M, o multicall.Options, begin func()) { MainWith(m, o, nil, begin) }

// MainWith is Main with additional programs by name, which users would have beside the applets.
func MainWith(m *testing.M, o multicall.Options, more map[string]func(), begin func()) {
	name := filepath.Base(os.Args[0])
	suite := strings.HasSuffix(name, ".test")
	if known := multicall.Has(name) || more[name] != nil; !known && !suite {
		fmt.Fprintf(os.Stderr, "%s: this test binary is no such applet\n", name)
		os.Exit(127)
	}
	if suite {
		begin()
	}
	commands := map[string]func(){}
	maps.Copy(commands, more)
	for _, a := range multicall.Applets() {
		commands[a.Name] = func() { os.Exit(multicall.Main(os.Args, o)) }
	}
	testscript.Main(m, commands)
}
