// Package applets makes a test binary every applet, so that a suite drives the
// same code as users do, as processes of their own, from the binary that it is.
//
// It decides nothing about a suite; the test mains below testscripts import it.
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

// Main is the test main: called as an applet, it is that applet, from multicall's
// own table, so that none can be forgotten; called as the test binary, it calls
// begin and runs the tests. Any other name must not run the suite again: exit
// code 127. It does not return.
func Main(m *testing.M, o multicall.Options, begin func()) { MainWith(m, o, nil, begin) }

// MainWith is Main with more programs, by their names, that users would have beside
// the applets.
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
