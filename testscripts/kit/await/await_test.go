package await

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// failure is a Test that records the message of its failure.
type failure string

func (f *failure) Fatalf(format string, args ...any) { *f = failure(fmt.Sprintf(format, args...)) }

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := Poll{Limit: time.Minute, Pause: time.Second, Report: func() string { return "and more" }}
		began := time.Now()
		late := func(d time.Duration) func() bool { return func() bool { return time.Since(began) >= d } }
		if took := Until(t, p, "soon", late(20*time.Second)); took != 20*time.Second {
			t.Errorf("it took %s", took)
		}
		if took := Until(t, p, "at once", func() string { return "" }); took != 0 {
			t.Errorf("what holds took %s", took)
		}
		for want, wait := range map[failure]func(t Test){
			"within 1m0s it never came true: a bird\nand more":       func(t Test) { Until(t, p, "a bird", func() bool { return false }) },
			"within 1m0s it never came true: a bird\nrain\nand more": func(t Test) { Until(t, p, "a bird", func() string { return "rain" }) },
		} {
			var got failure
			if wait(&got); got != want {
				t.Errorf("it fails with %q, want %q", got, want)
			}
		}
	})
}

// TestLooks checks that a condition is checked often enough even if the machine stood still for longer than
// the limit.
func TestLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		slow := func() bool { looks++; time.Sleep(time.Minute); return false }
		if _, ok := Try(Poll{Limit: time.Second, Looks: 5}, slow); ok || looks != 6 {
			t.Errorf("%d looks, %v", looks, ok)
		}
		if _, ok := Try(Poll{Limit: time.Second}, slow); ok || looks != 7 {
			t.Errorf("%d looks, %v", looks, ok)
		}
	})
}
