package juju

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"bijou/multicall/console"
)

// slowProcesses are machines' processes that end only after a while.
type slowProcesses struct{ Processes }

func (slowProcesses) Halt(context.Context, string, time.Duration) error {
	time.Sleep(12 * time.Second)
	return nil
}

// TestHaltedMachinesAreCounted checks that the destruction of an environment prints a line before the first
// machine has ended.
func TestHaltedMachinesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := &operator{
			bar:   console.NewProgress(&out, time.Now),
			parts: Parts{Processes: slowProcesses{}},
		}
		if err := o.haltMachines(t.Context(), []string{"0", "1", "2"}); err != nil {
			t.Fatal(err)
		}

		want := "machines ended: 0 of 3\nmachines ended: 1 of 3\nmachines ended: 2 of 3\n"
		if got := out.String(); got != want {
			t.Errorf("it shows %q, want %q", got, want)
		}
	})
}
