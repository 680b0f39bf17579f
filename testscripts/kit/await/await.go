// Package await polls a condition in tests until it holds. It replaces sleeps, which prove nothing on a
// busy machine. Tests never loop until a deadline themselves.
package await

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// Poll sets how to wait. Its limit is several times the need of a busy machine.
type Poll struct {
	Limit  time.Duration // the time after which it stops waiting
	Pause  time.Duration // between two checks; 0 means 10 ms
	Looks  int           // at least this many checks, even after the limit, since the machine may have been suspended
	Report func() string // additional text for a failure; may be nil
}

// Condition is a condition to wait for. One form returns whether it holds. The other returns the reason
// why it does not hold yet, or "".
type Condition interface{ func() bool | func() string }

// Test is a testing.TB, or a script.
type Test interface {
	Fatalf(format string, args ...any)
}

// Until blocks until the condition holds, and returns the duration of the wait. After the limit it fails the
// test, with the awaited condition and the reason why it does not hold.
func Until[C Condition](t Test, p Poll, what string, holds C) (took time.Duration) {
	if t, ok := t.(interface{ Helper() }); ok {
		t.Helper()
	}
	began := time.Now()
	if why, ok := Try(p, holds); !ok {
		if why != "" {
			what += "\n" + why
		}
		if p.Report != nil {
			what += "\n" + p.Report()
		}
		t.Fatalf("within %s it never came true: %s", p.Limit, what)
	}
	return time.Since(began)
}

// Try is like Until but does not fail the test: it returns whether the condition holds, and otherwise the
// reason.
func Try[C Condition](p Poll, holds C) (why string, ok bool) {
	if p.Pause == 0 {
		p.Pause = 10 * time.Millisecond
	}
	end := time.Now().Add(p.Limit * patience())
	for looked := 0; ; looked++ {
		if why, ok = look(holds); ok {
			return "", true
		}
		if time.Now().After(end) && looked >= p.Looks {
			return why, false
		}
		time.Sleep(p.Pause)
	}
}

// patience returns the factor by which all limits grow, from the variable BIJOU_TEST_PATIENCE. It is 1 unless
// .ci/run finds that the machine is slow to start a process.
var patience = sync.OnceValue(func() time.Duration {
	n, err := strconv.Atoi(os.Getenv("BIJOU_TEST_PATIENCE"))
	if err != nil || n < 1 {
		return 1
	}
	return time.Duration(n)
})

// look checks the condition once.
func look[C Condition](holds C) (why string, ok bool) {
	switch holds := any(holds).(type) {
	case func() bool:
		return "", holds()
	case func() string:
		why = holds()
	}
	return why, why == ""
}

// Unless returns "" if the condition is true, and otherwise the reason.
func Unless(so bool, reason string, args ...any) string {
	if so {
		return ""
	}
	return fmt.Sprintf(reason, args...)
}
