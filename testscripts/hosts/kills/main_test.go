package kills

import (
	"fmt"
	"testing"

	"bijou/multicall"
	"bijou/testscripts/kit/applets"
	"bijou/testscripts/kit/need"
)

// TestMain makes this binary every applet.
func TestMain(m *testing.M) {
	applets.Main(m, multicall.Options{Fault: applets.Fault()}, func() {
		if !need.LongRun() {
			fmt.Println("skip: random kills, and kills in upgrades, take minutes; BIJOU_TEST_LONG=1 runs them")
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
