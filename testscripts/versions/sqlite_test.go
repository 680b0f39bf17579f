package versions

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"bijou/testscripts/judge"
)

// TestFile has an environment in a file go over to this binary, whose process is then
// killed: the one that is started next holds the claim.
func TestFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Former(t), "")
	w.deploy("near", 0)
	w.eventually("the unit has started", func() string {
		if w.runs("near/0") < 3 {
			return "there are hooks to come"
		}
		return ""
	})
	w.current = Current(t)
	w.juju(w.current, "upgrade-juju", "--wait", "3m")
	w.claimed(0, w.agent())
	w.settle()

	first := w.agent()
	check(t, syscall.Kill(first, syscall.SIGKILL))
	w.eventually("the agent is dead", func() string {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", first))
		if _, rest, _ := strings.Cut(string(stat), ") "); err == nil && !strings.HasPrefix(rest, "Z") {
			return "it lives"
		}
		return ""
	})
	check(t, judge.Append(w.records["near/0"], judge.Event{Event: judge.Died}))
	w.juju(w.current, "start")
	w.claimed(0, w.agent())
	w.settle()
}
