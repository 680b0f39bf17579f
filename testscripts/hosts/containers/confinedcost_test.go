package containers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The bounds of what the gateway costs a command, as ratios of confined to direct.
const (
	maxWallRatio = 1.25
	maxCPURatio  = 1.05
)

// TestCostOfConfinement measures what the gateway costs a hook: the same commands run in turn in a confined
// container and in one that opens the state itself. The figures are for docs/dev/performance.md. Since other
// processes of the host can slow down one side more than the other, it measures up to three times.
func TestCostOfConfinement(t *testing.T) {
	direct := newCostSide(t, "direct", false)
	confined := newCostSide(t, "confined", true)

	const attempts = 3
	for attempt := 1; ; attempt++ {
		measureInTurn(direct, confined)
		for _, s := range []*costSide{direct, confined} {
			t.Logf("%-8s %d commands: median %s, the agent's CPU time %s a command",
				s.name, len(s.wall), s.medianWall().Round(100*time.Microsecond), s.cpu/time.Duration(len(s.wall)))
		}

		wall := float64(confined.medianWall()) / float64(direct.medianWall())
		cpu := float64(confined.cpu) / float64(direct.cpu)
		t.Logf("ratio: wall %.2f, the agent's CPU time %.2f", wall, cpu)
		if wall <= maxWallRatio && cpu <= maxCPURatio {
			return
		}
		if attempt == attempts {
			t.Fatalf("the ratios exceed %.2f and %.2f in each of %d measurements", maxWallRatio, maxCPURatio, attempts)
		}
	}
}

// costSide is an environment with one unit in a container, and what commands there have cost.
type costSide struct {
	*world
	name string
	wall []time.Duration // of each command
	cpu  time.Duration   // of the agent, for all commands
}

func newCostSide(t *testing.T, name string, confined bool) *costSide {
	s := &costSide{world: newWorld(t, name, fmt.Sprintf("--config nspawn.confined=%v", confined)), name: name}
	s.sh("juju deploy --series " + s.series + " testscripts/charms/trivial one")
	s.eventually("juju status --wide", `one/0 \S* +started`)
	return s
}

// measureInTurn runs the same commands on both sides, some on one side and then as many on the other.
func measureInTurn(sides ...*costSide) {
	const rounds, commands = 6, 25
	for _, s := range sides {
		s.wall = nil
		s.cpu = 0
	}

	for range rounds {
		for _, s := range sides {
			before := s.agentTime()
			for range commands {
				began := time.Now()
				s.sh("juju run one/0 -- relation-ids peers")
				s.wall = append(s.wall, time.Since(began))
			}
			s.cpu += s.agentTime() - before
		}
	}
}

func (s *costSide) medianWall() time.Duration {
	sorted := slices.Sorted(slices.Values(s.wall))
	return sorted[len(sorted)/2]
}

// agentTime returns the CPU time that the agent of machine 1 has used, without its hooks.
func (w *world) agentTime() time.Duration {
	w.t.Helper()
	pid := w.inside("1", "systemctl show -p MainPID --value bijou-agent")
	fields := strings.Fields(w.inside("1", "sed 's/.*) //' /proc/"+pid+"/stat"))
	var ticks int
	for _, field := range fields[11:13] { // utime and stime; see proc_pid_stat(5)
		n, err := strconv.Atoi(field)
		if err != nil {
			w.t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
