package uniter

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/agent/hookexec"
	"bijou/state/actions"
)

func TestKeptOutput(t *testing.T) {
	var k actionOutput
	k.write(hookexec.Stdout, []byte(strings.Repeat("x", actions.MaxOutput-1)))
	k.write(hookexec.Stdout, []byte("yz"))
	k.write(hookexec.Stderr, []byte("e"))
	got := k.get()
	want := []any{actions.MaxOutput, "e", int64(1)}
	if diff := cmp.Diff(want, []any{len(got.Stdout), string(got.Stderr), got.Dropped}); diff != "" {
		t.Error(diff)
	}
}
