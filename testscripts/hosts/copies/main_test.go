package copies

import (
	"os"
	"testing"

	"bijou/multicall"
	"bijou/testscripts/kit/applets"
	"bijou/testscripts/kit/confined"
	"bijou/testscripts/kit/judge"
)

// TestMain lets this binary act as every applet, for the agents that have a gateway. All other agents run the
// product's binary.
func TestMain(m *testing.M) {
	if judge.IsWitness() { // the applets would be copies of this binary, and the host has no space for them
		os.Exit(m.Run())
	}

	options := multicall.Options{AgentState: confined.AgentState()}
	applets.MainWith(m, options, map[string]func(){confined.Program: confined.Serve}, func() {})
}
