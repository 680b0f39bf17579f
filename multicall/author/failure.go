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
	// hookOutput matches a line of the log about a hook. Its groups are the time, the unit, the level, the
	// hook, and the message: a line that the hook has printed, or the agent's own message.
	hookOutput = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(\S+ \S+) (\S+/\d+) (\S+) (\S+): (.*)$`)
	})
	// hookOutcome matches the agent's message that a hook begins, is done or has failed. Its second group is
	// the reason of a failure.
	hookOutcome = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:hook "[^"]+"|action \d+ \([^)]+\)) (begins|is done|failed after [^:]+: (.*))`)
	})

	// place matches a file and line below the charm's directory, at the beginning of a line of Python's
	// traceback or of a shell's message. Its groups are the file, the line in a traceback, the line in a
	// message, and the rest of the message.
	place = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:  File ")?(?:\S*/agents/unit-[^/]+/charm|\.)/(?:\./)*([^":]+)(?:", line (\d+)|: (?:line )?(\d+): (.*))`)
	})
)

// hookRun is one run of a hook, as far as the log shows it.
type hookRun struct {
	unit, hook      string
	begun           time.Time
	place           string // the last place that a traceback or a shell's message names
	reason          string // the last line of that traceback or message
	complaint       string // the last line that the hook wrote to stderr
	complaintBefore string // the complaint before the traceback
	frames          []frame
	inProgram       bool // whether the traceback ends in Python's module that runs programs
}

// frame is a place in the charm that a traceback names.
type frame struct {
	place string
	code  string // the line of code there
}

// traceFunc returns the place in the charm and the command at which a failed hook ended. It returns "" for
// both if it cannot find them.
type traceFunc func(unit, hook, failure string) (place, command string)

// describeEnds reads lines of the log, and returns a sorted list of descriptions of hooks, without repeats. It
// describes each hook that has failed, with the file and line where the hook ended if they are known. It also
// describes each hook that is still running, with its duration until now and its current command if one is found.
//
// The argument tools contains the names of the hook tools. describeEnds calls trace for a failed hook that
// has printed no place.
func describeEnds(lines, tools []string, now time.Time, trace traceFunc) (ends []string) {
	running := map[string]*hookRun{} // by unit
	// Equal lines in a row count once.
	for _, line := range slices.Compact(lines) {
		m := hookOutput().FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}

		stamp := m[1]
		unit := m[2]
		level := m[3]
		hook := m[4]
		message := m[5]
		outcome := hookOutcome().FindStringSubmatch(message)
		run := running[unit]
		switch {
		case outcome != nil && outcome[1] == "begins":
			// A wrong time only affects the duration that is shown for a hook that is still running.
			begun, _ := time.ParseInLocation(time.DateTime+".000", stamp, time.Local)
			running[unit] = &hookRun{unit: unit, hook: hook, begun: begun}
		case run == nil:
			// The line belongs to no hook that has begun.
		case outcome != nil:
			// A hook that is done has no failure.
			if failure := outcome[2]; failure != "" {
				run.findCause(hook, failure, tools, trace)
				ends = append(ends, run.describeFailure(failure))
			}
			delete(running, unit)
		default:
			run.readOutput(message)
			if level == "ERROR" {
				run.complaint = message
			}
		}
	}

	for _, run := range running {
		description := fmt.Sprintf("%s %s has been running for %s", run.unit, run.hook,
			now.Sub(run.begun).Round(100*time.Millisecond))
		if command := findCommand(run.unit); command != "" {
			description += "; current command: " + command
		}
		ends = append(ends, description)
	}

	slices.Sort(ends)
	return slices.Compact(ends)
}

// findCause completes the place and the reason of a run that has failed. If the hook has printed no place, findCause
// takes both from trace, and adds the complaint to a reason that it found. The argument hook is the hook of which the
// agent has logged the failure.
func (r *hookRun) findCause(hook, failure string, tools []string, trace traceFunc) {
	if r.place == "" {
		r.place, r.reason = trace(r.unit, hook, failure)
		r.addMessage(strings.TrimPrefix(r.complaint, "ERROR "))
	}
	r.blameCaller(tools)
	r.quoteTool(tools)
}

// readOutput reads a line that the hook has printed. It keeps the last place in the charm that a traceback or a
// shell's message names, the reason that follows, and the places since the last traceback began. It also keeps the
// last line of stderr before that traceback, and notes whether the traceback ends in Python's module that runs
// programs.
func (r *hookRun) readOutput(line string) {
	// This line of a traceback names a file, which need not belong to the charm.
	if strings.HasPrefix(line, "  File ") {
		r.inProgram = strings.Contains(line, `/subprocess.py", line `)
	}

	m := place().FindStringSubmatch(line)
	last := len(r.frames) - 1
	switch {
	case line == "Traceback (most recent call last):":
		// The complaint can be the message of the program whose failure the traceback is about.
		r.complaintBefore = r.complaint
		r.frames = nil
	case m != nil && strings.HasPrefix(m[1], "venv/"):
		// The place is in a library that the charm's own code has called.
	case m != nil:
		// Only one of the groups 2 and 3 contains the number of the line.
		r.place = m[1] + ":" + m[2] + m[3]
		r.reason = m[4]
		r.frames = append(r.frames, frame{place: r.place})
	case strings.HasPrefix(line, " ") || r.place == "":
		// In a traceback, the line of code follows its place. A line before any place is not a reason.
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

// blameCaller changes the place of a failed call of a program to the innermost line of the traceback that
// names the program. The last line of the traceback is often in a helper function of the charm that calls all
// programs. If the exception does not name a program, blameCaller looks for a line that names a hook tool. The place
// stays if there is no such line, or if the traceback does not end in a call of a program.
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

// quoteTool adds a hook tool's own error message to the reason, if the reason is Python's exception about a call of
// this tool. The message is the complaint before the traceback.
func (r *hookRun) quoteTool(tools []string) {
	m := failedProgram().FindStringSubmatch(r.reason)
	isAboutTool := m != nil && slices.Contains(tools, m[1])
	message, isError := strings.CutPrefix(r.complaintBefore, "ERROR ")
	if isAboutTool && isError {
		r.addMessage(message)
	}
}

// addMessage adds a message to the reason. It does nothing if the message or the reason is empty.
func (r *hookRun) addMessage(message string) {
	if r.reason != "" && message != "" {
		r.reason = strings.TrimSuffix(r.reason, ".") + ": " + message
	}
}

// describeFailure returns one line about a run that has failed. The argument failure is the agent's reason,
// such as an exit code. The line has the place and the reason of the run or, without a place, the complaint
// if there is one.
func (r *hookRun) describeFailure(failure string) string {
	switch {
	case r.place == "" && r.complaint != "":
		return fmt.Sprintf("%s %s failed: %s: %s", r.unit, r.hook, failure, r.complaint)
	case r.place == "":
		return fmt.Sprintf("%s %s failed: %s", r.unit, r.hook, failure)
	}

	return fmt.Sprintf("%s %s failed at %s: %s (%s)", r.unit, r.hook, r.place, r.reason, failure)
}

// findCommand returns the command line of the newest process of a unit's hook, shortened to maxLength bytes. The
// process with the highest PID counts as the newest. It returns "" if there is no such process. It finds these
// processes by their working directory, which is the charm's directory.
func findCommand(unit string) (command string) {
	const maxLength = 200
	newest := 0
	// Processes can end at any time, so errors are ignored.
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range procs {
		pid, _ := strconv.Atoi(filepath.Base(proc))
		if pid < newest {
			continue
		}
		workDir, _ := os.Readlink(filepath.Join(proc, "cwd"))
		if !isCharmDirOf(unit, workDir) {
			continue
		}

		argv, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		if len(argv) > 0 {
			newest = pid
			command = text.Escape(string(bytes.ReplaceAll(bytes.TrimRight(argv, "\x00"), []byte{0}, []byte{' '})))
		}
	}

	return command[:min(maxLength, len(command))]
}

// isCharmDirOf reports whether the directory is the charm's directory of the unit.
func isCharmDirOf(unit, dir string) bool {
	if filepath.Base(dir) != "charm" {
		return false
	}
	unitDir := filepath.Dir(dir)
	return slices.Contains(unitDirs("*"), unitDir) && unitOf(unitDir) == unit
}
