package kills

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"bijou/multicall"
)

// long is the variable that asks for the suites of minutes; without it they are short.
const long = "BIJOU_TEST_LONG"

// TestMain makes this binary every applet. A name that is neither an applet nor
// the test binary's own must not run the suite again.
func TestMain(m *testing.M) {
	name := filepath.Base(os.Args[0])
	if known := multicall.Has(name); !known && !strings.HasSuffix(name, ".test") {
		fmt.Fprintf(os.Stderr, "%s: this test binary is no such applet\n", name)
		os.Exit(127)
	}
	if strings.HasSuffix(name, ".test") && os.Getenv(long) == "" {
		fmt.Printf("skip: the long suite of kills takes minutes; %s=1 runs it\n", long)
	}
	commands := map[string]func(){}
	for _, a := range multicall.Applets() {
		commands[a.Name] = func() { os.Exit(multicall.Main(os.Args, multicall.Options{Faults: true})) }
	}
	testscript.Main(m, commands)
}

// isLong says if it was asked for.
func isLong() bool { return os.Getenv(long) != "" }

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
