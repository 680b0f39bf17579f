package outage

import (
	"fmt"
	"os"
	"testing"

	"bijou/multicall"
	"bijou/testscripts/applets"
)

// long is the variable that asks for the suites of minutes.
const long = "BIJOU_TEST_LONG"

// TestMain makes this binary every applet.
func TestMain(m *testing.M) {
	applets.Main(m, multicall.Options{}, func() {
		if os.Getenv(long) == "" {
			fmt.Printf("skip: the outage suites take minutes; %s=1 runs them\n", long)
		}
	})
}

// needLong skips a suite unless it was asked for.
func needLong(t *testing.T) {
	t.Helper()
	if os.Getenv(long) == "" {
		t.Skipf("%s is not set", long)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
