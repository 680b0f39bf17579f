package server

import (
	"strings"
	"testing"

	"bijou/hookenv"
)

func TestAPanicFailsOneCall(t *testing.T) {
	got := runRecovered(func() hookenv.Result { panic("no such luck") })
	if got.Exit != 1 || !strings.Contains(string(got.Stderr), "ERROR internal error: no such luck") {
		t.Errorf("a tool that panics answers %d, %q", got.Exit, got.Stderr)
	}
	if got := runRecovered(func() hookenv.Result { return hookenv.Result{Exit: 2} }); got.Exit != 2 {
		t.Errorf("one that does not answers %d", got.Exit)
	}
}
