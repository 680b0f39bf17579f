package versions

import (
	"fmt"
	"os"
	"testing"

	"bijou/multicall"
	"bijou/provision/plugin"
	"bijou/testscripts/fakes/dummy"
	"bijou/testscripts/kit/applets"
)

// TestMain lets this binary act as a provider whose machines do nothing: the test itself starts machine 1's
// agent.
func TestMain(m *testing.M) {
	applets.MainWith(m, multicall.Options{}, map[string]func(){plugin.Prefix + dummy.Name: serveDummy}, func() {})
}

func serveDummy() {
	if err := plugin.Serve(dummy.Make); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
