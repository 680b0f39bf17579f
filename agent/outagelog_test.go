package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"bijou/state"
	"bijou/state/logs"
	"bijou/state/store"
)

func TestTroubleIsSaidOncePerCause(t *testing.T) {
	var lines []string
	tr := newOutageLog(slog.New(noting{&lines}))
	a, b, c := tr.partReporter("unit-a-0"), tr.partReporter("unit-b-0"), tr.partReporter("unit-c-0")
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
	a(store.AwayError("nobody listens", errors.New("refused")))
	b(fmt.Errorf("cannot begin session: %w", store.AwayError("nobody answers", context.DeadlineExceeded)))
	a(nil)
	b(nil)
	const cannot = "cannot continue; retrying until it succeeds"
	if want := []string{cannot, cannot, "continuing", cannot, "continuing"}; !slices.Equal(lines, want) {
		t.Errorf("said %q", lines)
	}
}

// noting is a slog.Handler that keeps the messages.
type noting struct{ lines *[]string }

func (n noting) Enabled(context.Context, slog.Level) bool { return true }
func (n noting) Handle(_ context.Context, r slog.Record) error {
	*n.lines = append(*n.lines, r.Message)
	return nil
}
func (n noting) WithAttrs([]slog.Attr) slog.Handler { return n }
func (n noting) WithGroup(string) slog.Handler      { return n }

// reporter records the reports about agents. A test can make its store unavailable.
type reporter struct {
	away bool
	said []string
}

func (r *reporter) report(_ context.Context, agent string, t *state.Trouble, line logs.Line) error {
	if r.away {
		return state.ErrAway
	}
	text := "nothing"
	if t != nil {
		text = fmt.Sprintf("%s, attempt %d", t.Message, t.Attempts)
	}
	r.said = append(r.said, fmt.Sprintf("%s: %s; %s", agent, text, line.Message))
	return nil
}

// TestTroubleIsShown checks that an agent's status shows a failure from the second attempt on, and that
// the log has one line for each cause.
func TestTroubleIsShown(t *testing.T) {
	r := &reporter{}
	tr := newOutageLog(slog.New(slog.DiscardHandler))
	tr.report = r.report
	a := tr.agentReporter("unit-a-0")
	tell := func(err error) { a(t.Context(), err, time.Now()) }
	full, link := errors.New("no space left\nin detail"), errors.New("a link")
	tell(full) // this error ends by itself
	tell(nil)
	tell(full)
	tell(full)
	tell(full)
	tell(link)
	tell(link)
	tell(store.AwayError("nobody listens", errors.New("refused")))
	tell(store.AwayError("nobody listens", errors.New("refused")))
	r.away = true
	tell(nil)
	r.away = false
	tell(nil)
	tell(nil)
	want := []string{
		"unit-a-0: no space left, attempt 2; cannot continue; retrying: no space left",
		"unit-a-0: no space left, attempt 3; ",
		"unit-a-0: a link, attempt 2; cannot continue; retrying: a link",
		"unit-a-0: nothing; continues",
	}
	if !slices.Equal(r.said, want) {
		t.Errorf("said %q", r.said)
	}
}
