package outage

import (
	"fmt"
	"testing"

	"bijou/multicall"
	"bijou/testscripts/fakes/lyingdisk"
	"bijou/testscripts/kit/applets"
	"bijou/testscripts/kit/need"
)

// TestMain makes this binary every applet.
func TestMain(m *testing.M) {
	applets.MainWith(m, multicall.Options{}, map[string]func(){lyingdisk.Program: lyingdisk.Main, operationProgram: runOperation}, func() {
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
