package kills

import (
	"fmt"
	"os"
	"testing"

	"bijou/multicall"
	"bijou/testscripts/applets"
)

// long is the variable that asks for the suites of minutes; without it they are short.
const long = "BIJOU_TEST_LONG"

// TestMain makes this binary every applet.
func TestMain(m *testing.M) {
	applets.Main(m, multicall.Options{Faults: true}, func() {
		if !isLong() {
			fmt.Printf("skip: the long suite of kills takes minutes; %s=1 runs it\n", long)
		}
	})
}

// isLong says if it was asked for.
func isLong() bool { return os.Getenv(long) != "" }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
