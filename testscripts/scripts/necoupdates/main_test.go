package necoupdates

import (
	"testing"

	"bijou/testscripts/kit/bootworld"
	"bijou/testscripts/kit/script"
)

// TestMain lets this binary act as every applet.
func TestMain(m *testing.M) { script.Main(m, 4, nil) }

// TestScripts runs every *.txtar in this directory over each store that processes can share.
func TestScripts(t *testing.T) { script.Run(t, bootworld.Extras()) }
