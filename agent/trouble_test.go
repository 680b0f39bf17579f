package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"bijou/state/store"
)

func TestTroubleIsSaidOncePerCause(t *testing.T) {
	var lines []string
	tr := newTrouble(slog.New(noting{&lines}))
	a, b, c := tr.of("unit-a-0"), tr.of("unit-b-0"), tr.of("unit-c-0")
	away, full := errors.New("the store is away"), errors.New("no space left")
	a(fmt.Errorf("cannot announce agent %q: %w", "unit-a-0", away))
	b(fmt.Errorf("cannot announce agent %q: %w", "unit-b-0", away))
	a(away)
	c(fmt.Errorf("cannot deploy: %w", full))
	c(full)
	a(nil)
	a(nil)
	b(nil)
	c(nil)
	a(store.Away("nobody listens", errors.New("refused")))
	b(fmt.Errorf("cannot begin session: %w", store.Away("nobody answers", context.DeadlineExceeded)))
	a(nil)
	b(nil)
	const cannot = "cannot go on; trying again until it succeeds"
	if want := []string{cannot, cannot, "going on again", cannot, "going on again"}; !slices.Equal(lines, want) {
		t.Errorf("said %q", lines)
	}
}

// noting is a slog.Handler that notes messages.
type noting struct{ lines *[]string }

func (n noting) Enabled(context.Context, slog.Level) bool { return true }
func (n noting) Handle(_ context.Context, r slog.Record) error {
	*n.lines = append(*n.lines, r.Message)
	return nil
}
func (n noting) WithAttrs([]slog.Attr) slog.Handler { return n }
func (n noting) WithGroup(string) slog.Handler      { return n }
