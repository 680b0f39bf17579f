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
	// hookOutput matches a line that a hook has printed, and hookOutcome matches an agent's message about a hook.
	hookOutput = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(\S+ \S+) (\S+/\d+) (\S+) (\S+): (.*)$`)
	})
	hookOutcome = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:hook "[^"]+"|action \d+ \([^)]+\)) (begins|is done|failed after [^:]+: (.*))`)
	})

	// place matches a file and line below the charm's directory, at the beginning of a line of Python's traceback or of
	// a shell's message.
	place = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:  File ")?(?:\S*/agents/unit-[^/]+/charm|\.)/(?:\./)*([^":]+)(?:", line (\d+)|: (?:line )?(\d+): (.*))`)
	})
)

// hookRun is one run of a hook, as far as the log shows it.
type hookRun struct {
	unit, hook string
	begun      time.Time
	place      string // the last place that a traceback or a shell's message names
	reason     string // the last line of that traceback or message
	complaint  string // the last line that the hook wrote to stderr
	before     string // the last line that the hook wrote to stderr before the traceback
	frames     []frame
	inProgram  bool // whether the traceback ends in Python's module that runs programs
}

// frame is a place in the charm that a traceback names.
type frame struct {
	place string
	code  string // the line of code there
}

// describeEnds describes the hooks that failed, with the file and line if the hook printed them. It also
// describes the hooks that still run, with their present commands and how long they have run until now.
//
// tools are the names of the hook tools. trace returns the place and the command at which a hook ended, for a hook that
// has printed no place. It returns "" if it cannot find them.
func describeEnds(
	lines, tools []string,
	now time.Time,
	trace func(unit, hook, failure string) (place, command string),
) (ends []string) {
	running := map[string]*hookRun{}
	for _, line := range slices.Compact(lines) {
		m := hookOutput().FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}

		at := m[1]
		unit := m[2]
		level := m[3]
		hook := m[4]
		said := m[5]
		outcome := hookOutcome().FindStringSubmatch(said)
		run := running[unit]
		switch {
		case outcome != nil && outcome[1] == "begins":
			// A wrong time only affects the duration that is shown for a hook that still runs.
			begun, _ := time.ParseInLocation(time.DateTime+".000", at, time.Local)
			running[unit] = &hookRun{unit: unit, hook: hook, begun: begun}
		case run == nil:
			// The line belongs to no hook that has begun.
		case outcome != nil:
			// Lines of hooks that are done contain no failure.
			if failure := outcome[2]; failure != "" {
				if run.place == "" {
					run.place, run.reason = trace(unit, hook, failure)
					run.addMessage(strings.TrimPrefix(run.complaint, "ERROR "))
				}
				run.blameCaller(tools)
				run.quoteTool(tools)
				ends = append(ends, run.describeFailure(failure))
			}
			delete(running, unit)
		default:
			run.note(said)
			if level == "ERROR" {
				run.complaint = said
			}
		}
	}

	for _, run := range running {
		text := fmt.Sprintf("%s %s has been running for %s", run.unit, run.hook, now.Sub(run.begun).Round(100*time.Millisecond))
		if command := findCommand(run.unit); command != "" {
			text += "; current command: " + command
		}
		ends = append(ends, text)
	}

	slices.Sort(ends)
	return slices.Compact(ends)
}

// note records the last place in the charm that a line of output names, and the line after it.
func (r *hookRun) note(line string) {
	if strings.HasPrefix(line, "  File ") {
		r.inProgram = strings.Contains(line, `/subprocess.py", line `)
	}

	m := place().FindStringSubmatch(line)
	last := len(r.frames) - 1
	switch {
	case line == "Traceback (most recent call last):":
		r.before = r.complaint
		r.frames = nil
	case m != nil && strings.HasPrefix(m[1], "venv/"):
		// The place is in a library that the charm's own code has called.
	case m != nil:
		r.place = m[1] + ":" + m[2] + m[3]
		r.reason = m[4]
		r.frames = append(r.frames, frame{place: r.place})
	case strings.HasPrefix(line, " ") || r.place == "":
		// This is a line of code, or it comes before any place.
		if last >= 0 && r.frames[last].code == "" {
			r.frames[last].code = line
		}
	case r.reason == "":
		// A traceback ends with its exception.
		r.reason = line
	}
}

// failedProgram matches the name of the program in Python's exceptions about a program.
var failedProgram = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:Command '\[|No such file or directory: |Permission denied: )'([^']+)'`)
})

// blameCaller changes the place of a failed call of a program to the innermost line that names the program. The
// innermost line of all is often in a function of the charm that calls all programs. If the exception does not name a
// program, the line must name a hook tool.
func (r *hookRun) blameCaller(tools []string) {
	if !r.inProgram {
		return
	}

	programs := tools
	if m := failedProgram().FindStringSubmatch(r.reason); m != nil {
		programs = m[1:]
	}
	for _, f := range slices.Backward(r.frames) {
		isNamed := func(name string) bool {
			return strings.Contains(f.code, `"`+name+`"`) || strings.Contains(f.code, "'"+name+"'")
		}
		if slices.ContainsFunc(programs, isNamed) {
			r.place = f.place
			return
		}
	}
}

// quoteTool adds the hook tool's own message to the reason, if the exception is about a call of a tool.
func (r *hookRun) quoteTool(tools []string) {
	m := failedProgram().FindStringSubmatch(r.reason)
	said, isError := strings.CutPrefix(r.before, "ERROR ")
	if m != nil && isError && slices.Contains(tools, m[1]) {
		r.addMessage(said)
	}
}

// addMessage adds a message to the reason, unless one of them is empty.
func (r *hookRun) addMessage(message string) {
	if r.reason != "" && message != "" {
		r.reason = strings.TrimSuffix(r.reason, ".") + ": " + message
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

// findCommand returns the shortened command line of the newest process of a unit's hook, or "" if there is none.
// It finds such processes by their working directory, which is the charm's directory.
func findCommand(unit string) (command string) {
	last := 0
	// Processes can end at any time, so errors are ignored.
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
