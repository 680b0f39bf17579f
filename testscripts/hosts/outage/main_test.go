package outage

import (
	"fmt"
	"testing"

	"bijou/multicall"
	"bijou/testscripts/fakes/lyingdisk"
	"bijou/testscripts/kit/applets"
	"bijou/testscripts/kit/confined"
	"bijou/testscripts/kit/need"
)

// TestMain lets this binary act as every applet.
func TestMain(m *testing.M) {
	programs := map[string]func(){
		lyingdisk.Program: lyingdisk.Main, operationProgram: runOperation, confined.Program: confined.Serve,
	}
	applets.MainWith(m, multicall.Options{AgentState: confined.AgentState()}, programs, func() {
		if !need.LongRun() {
			fmt.Println("skip: the outage suites take minutes; BIJOU_TEST_LONG=1 runs them")
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
