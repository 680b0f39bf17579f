package outage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bijou/testscripts/kit/localenv"
	"bijou/testscripts/kit/need"
)

// locked is the time for which a separate program locks the file.
const locked = 30 * time.Second

// TestLocked makes a separate program lock the file under a working fleet. Agents and commands must wait or
// report the lock, and continue after it.
func TestLocked(t *testing.T) {
	need.Long(t)
	w := newWorld(t, "")
	services := []string{"hub", "east", "west"}
	w.deployFleet(services, 3)
	rest(3 * time.Second)
	mark := w.mark()
	l := w.drive(services)
	release := localenv.Lock(t, w.StateFile())
	for end := time.Now().Add(locked); time.Now().Before(end); rest(3 * time.Second) {
		if a := w.ask("status"); a.code != 0 {
			t.Errorf("what only reads need not wait: %s", a)
		}
	}
	release()
	rest(3 * time.Second)
	refused := slices.DeleteFunc(refusals(l.halt()), refusedByRule)
	for _, a := range refused {
		if a.code != 1 || strings.Count(a.err, "error: ") != 1 || !strings.Contains(a.err, "locked") {
			t.Errorf("want one error that says what is locked: %s", a)
		}
	}
	w.settle("the lock")
	w.judge("locked file", fmt.Sprintf("locked for %v, %d commands refused", locked, len(refused)))
	w.checkSaidAtMostOnce(mark)
	w.tellTrouble(mark)
}

// refusedByRule reports whether a command was refused for a good reason. This happens because the load adds
// and removes without a check.
func refusedByRule(a answer) bool {
	return strings.Contains(a.err, "already related") ||
		strings.Contains(a.err, "their relation is still being destroyed") ||
		strings.Contains(a.err, "not found")
}

// checkSaidAtMostOnce checks that the log reports the beginning and the end of an outage once at most.
func (w *world) checkSaidAtMostOnce(mark int) {
	w.t.Helper()
	for _, line := range []string{`msg="cannot continue;`, `msg=continuing `, `msg="the session was lost;`} {
		if n := strings.Count(w.log(mark), line); n > 1 {
			w.t.Errorf("%s was said %d times in one outage", line, n)
		}
	}
}
