package versions

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"bijou/testscripts/kit/judge"
	"bijou/testscripts/kit/need"
)

// TestFile switches an environment in a file to this binary and then kills its process. The next
// process must hold the claim.
func TestFile(t *testing.T) {
	need.Whole(t)
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
	w.juju(w.current, "upgrade-juju", "--allow-downgrade", "--wait", "3m")
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

// TestFileOfBoth makes this binary and the former one write the same file, one as the agent and the other as
// an operator's command, across checkpoints. Neither may mistake the other's commits for a replacement of the
// file.
func TestFileOfBoth(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	former, current := Former(t), Current(t)
	for _, c := range []struct{ name, agent, commands string }{
		{"the former one runs", former, current},
		{"this one runs", current, former},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.agent, "")
			w.deploy("near", 0)
			first := w.agent()
			for turn := range 30 {
				w.juju(c.commands, "set", "near", fmt.Sprintf("set=turn=%d", turn))
				w.juju(c.agent, "set", "near", fmt.Sprintf("fail=none-%d%s", turn, strings.Repeat("x", 20_000)))
			}
			w.settle()
			if now := w.agent(); now != first {
				t.Errorf("the agent is process %d, and was %d", now, first)
			}
			w.juju(c.commands, "status")
			w.juju(c.agent, "stop")
			w.juju(c.commands, "start")
			w.settle()
			if _, err := os.Stat(strings.TrimPrefix(w.state(), "sqlite:") + "-replaced"); err == nil {
				t.Error("the file is marked as replaced")
			}
		})
	}
}
