package kills

import (
	"fmt"
	"testing"

	"bijou/multicall"
	"bijou/testscripts/kit/applets"
	"bijou/testscripts/kit/confined"
	"bijou/testscripts/kit/need"
)

// TestMain lets this binary act as every applet.
func TestMain(m *testing.M) {
	options := multicall.Options{Fault: applets.Fault(), AgentState: confined.AgentState()}
	applets.MainWith(m, options, map[string]func(){confined.Program: confined.Serve}, func() {
		if !need.LongRun() {
			fmt.Println("skip: kills at random, in upgrades and over a gateway take minutes; BIJOU_TEST_LONG=1 runs them")
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
