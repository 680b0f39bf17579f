package author

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"bijou/state/text"
)

var (
	// What a hook has printed, and what its agent says of it.
	hookOutput = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(\S+ \S+) (\S+/\d+) (\S+) (\S+): (.*)$`)
	})
	hookOutcome = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:hook "[^"]+"|action \d+ \([^)]+\)) (begins|is done|failed after [^:]+: (.*))`)
	})

	// A place below the charm's directory, as Python's traceback and a shell's message begin with it.
	place = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:  File ")?(?:\S*/agents/unit-[^/]+/charm|\.)/([^":]+)(?:", line (\d+)|: (?:line )?(\d+): (.*))`)
	})
)

// hookRun is one run of a hook, as far as the log shows it.
type hookRun struct {
	unit, hook string
	begun      time.Time
	place      string // where a traceback ended, or a shell's last message was about
	reason     string // the last line of that
	complaint  string // the last line that it wrote to stderr
}

// describeEnds describes each hook that failed, with the line of its file if it printed one, and each hook
// that still runs at now, with its present command.
//
// trace returns the place and the command at which a hook ended that printed no line; "" if it does not know.
func describeEnds(lines []string, now time.Time, trace func(unit, hook, failure string) (place, command string)) (ends []string) {
	running := map[string]*hookRun{}
	for _, line := range slices.Compact(lines) {
		m := hookOutput().FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}

		unit := m[2]
		hook := m[4]
		said := m[5]
		outcome := hookOutcome().FindStringSubmatch(said)
		run := running[unit]
		switch {
		case outcome != nil && outcome[1] == "begins":
			at, _ := time.ParseInLocation(time.DateTime+".000", m[1], time.Local)
			running[unit] = &hookRun{unit: unit, hook: hook, begun: at}
		case run == nil:
			// The line belongs to no hook that has begun.
		case outcome != nil:
			if outcome[2] != "" {
				if run.place == "" {
					run.place, run.reason = trace(unit, hook, outcome[2])
				}
				ends = append(ends, run.describeFailure(outcome[2]))
			}
			delete(running, unit)
		default:
			if m[3] == "ERROR" {
				run.complaint = said
			}
			run.note(said)
		}
	}

	for _, run := range running {
		text := fmt.Sprintf("%s %s has run for %s", run.unit, run.hook, now.Sub(run.begun).Round(100*time.Millisecond))
		if command := findCommand(run.unit); command != "" {
			text += ", now: " + command
		}
		ends = append(ends, text)
	}

	slices.Sort(ends)
	return slices.Compact(ends)
}

// note remembers the last place of the charm that a line of output names, and the last line after it.
func (r *hookRun) note(line string) {
	m := place().FindStringSubmatch(line)
	switch {
	case m != nil && strings.HasPrefix(m[1], "venv/"): // where the charm's own line led
	case m != nil:
		r.place = m[1] + ":" + m[2] + m[3]
		r.reason = m[4]
	case strings.HasPrefix(line, " ") || r.place == "":
		// A line of code, or one before any place.
	case r.reason == "":
		r.reason = line // a traceback ends with its exception
	}
}

func (r *hookRun) describeFailure(failure string) string {
	switch {
	case r.place == "" && r.complaint != "":
		return fmt.Sprintf("%s %s failed: %s: %s", r.unit, r.hook, failure, r.complaint)
	case r.place == "":
		return fmt.Sprintf("%s %s failed: %s", r.unit, r.hook, failure)
	}

	return fmt.Sprintf("%s %s failed at %s: %s (%s)", r.unit, r.hook, r.place, r.reason, failure)
}

// findCommand returns the command line of the newest process of a unit's hook, shortened; empty if none is
// found. It finds such processes by their working directory, which is the charm's.
func findCommand(unit string) (command string) {
	last := 0
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		dir, _ := os.Readlink(filepath.Join(proc, "cwd"))
		pid, _ := strconv.Atoi(filepath.Base(proc))
		if pid < last || filepath.Base(dir) != "charm" || !slices.Contains(unitDirs("*"), filepath.Dir(dir)) ||
			unitOf(filepath.Dir(dir)) != unit {
			continue
		}

		argv, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		if len(argv) > 0 {
			last = pid
			command = text.Escape(string(bytes.ReplaceAll(bytes.TrimRight(argv, "\x00"), []byte{0}, []byte{' '})))
		}
	}

	const most = 200
	return command[:min(most, len(command))]
}
