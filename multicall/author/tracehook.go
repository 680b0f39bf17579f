package author

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// traceTimeout limits the traced runs of all hooks of a script. It is long, since a hook can fail after many seconds,
// and the host may be under load.
const traceTimeout = time.Minute

// traceProgram makes bash print each command, with its file and line, before bash runs the command.
const traceProgram = tracePrompt + "\nset -x\n"

// tracePrompt makes bash begin each line of a trace with the file and the line of the command.
const tracePrompt = "PS4='+charm-test-trace:${BASH_SOURCE}:${LINENO}:'"

// tracedLine matches a line of a trace. Its groups are the file below the charm's directory, the line, and
// the command.
var tracedLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\++charm-test-trace:(?:\S*/charm/|\./)?([^:\n]+):(\d+):(.*)$`)
})

// traceHook runs a failed hook of a unit again with a trace. It returns the place in the charm where the hook
// ended, as FILE:LINE, and the command at this place. The argument failure is the reason of the first run's
// failure, such as "exit code 1". traceHook returns "" for both results if it cannot trace the hook. This is
// also the case if the hook is not a shell script, or does not fail for the same reason. With --on-host or
// --shell it does not run the hook, since the user may look at the results of the first run.
func (r *scriptRun) traceHook(ctx context.Context, unit, hook, failure string) (place, command string) {
	dir := charmDirOf(unit)
	if r.OnHost || r.Shell || dir == "" {
		return "", ""
	}

	file := filepath.Join("hooks", hook)
	options, isShell := shellOptions(filepath.Join(dir, file))
	bash, err := exec.LookPath("bash")
	if !isShell || err != nil {
		return "", ""
	}

	shell := append([]string{bash}, options...)
	relation, _, hasRelation := strings.Cut(hook, "-relation-")
	if hasRelation {
		return r.traceRelationHook(ctx, unit, relation, filepath.Join(dir, file), failure, shell)
	}

	// bash runs the file in BASH_ENV before a script.
	program := filepath.Join(r.Folder, "trace.sh")
	if err := os.WriteFile(program, []byte(traceProgram), 0o644); err != nil {
		return "", ""
	}
	args := append([]string{"do", "--unit", unit, "env", "BASH_ENV=" + program}, shell...)
	cmd := exec.CommandContext(ctx, "juju", append(args, file)...)
	cmd.Dir = dir
	cmd.Env = r.environ
	// A process that the hook leaves running can keep the output open.
	cmd.WaitDelay = time.Second
	// An error is expected, since the hook fails.
	out, _ := cmd.CombinedOutput()
	hasSameFailure := failure == fmt.Sprintf("exit code %d", cmd.ProcessState.ExitCode())
	if !hasSameFailure {
		return "", ""
	}

	return lastTraced(string(out))
}

// lastTraced returns the place and the command in the last traced line of a text, or "" for both if there is no such
// line.
func lastTraced(text string) (place, command string) {
	lines := tracedLine().FindAllStringSubmatch(text, -1)
	if len(lines) == 0 {
		return "", ""
	}
	last := lines[len(lines)-1]
	return last[1] + ":" + last[2], strings.TrimSpace(last[3])
}

// traceRelationHook is traceHook for a relation hook, which has its relation only if the agent runs the hook.
// It adds the trace to the hook's file in the unit's directory, lets the agent retry the hook, and restores
// the file. The argument shell is the command that runs the file.
func (r *scriptRun) traceRelationHook(
	ctx context.Context,
	unit, relation, file, failure string,
	shell []string,
) (place, command string) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", ""
	}
	hook := filepath.Base(file)
	trace := filepath.Join(r.Folder, "trace-"+filepath.Base(filepath.Dir(charmDirOf(unit)))+"-"+hook)
	if err := os.WriteFile(file, addTrace(data, shell, trace), 0o755); err != nil {
		return "", ""
	}
	// An error does no harm, since the unit's directory is removed after the test.
	defer os.WriteFile(file, data, 0o755)

	earlierRuns := len(outcomesOf(unit, hook))
	cmd := exec.CommandContext(ctx, "juju", "resolved", "--retry", unit, relation)
	cmd.Dir = r.work
	cmd.Env = r.environ
	if err := cmd.Run(); err != nil {
		// The unit no longer has this failure.
		return "", ""
	}

	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		outcomes := outcomesOf(unit, hook)
		// The file exists only after a traced run has begun.
		traceText, _ := os.ReadFile(trace)
		// If a run has ended without a trace, it had begun before this function added the trace.
		hasEnded := len(outcomes) != earlierRuns && len(traceText) > 0
		if !hasEnded {
			continue
		}

		// A different failure would not explain the first one.
		if outcomes[len(outcomes)-1] != failure {
			return "", ""
		}
		return lastTraced(string(traceText))
	}

	return "", ""
}

// addTrace returns the shell script data with commands that write a trace to a file. All lines keep their
// numbers. The argument shell is the command that runs the script.
func addTrace(data []byte, shell []string, trace string) []byte {
	_, body, _ := strings.Cut(string(data), "\n")
	startTrace := fmt.Sprintf("exec {charm_test_trace}>'%s'; BASH_XTRACEFD=$charm_test_trace; %s; set -x; ", trace, tracePrompt)
	return []byte("#!" + strings.Join(shell, " ") + "\n" + startTrace + body)
}

// outcomesOf returns the outcome of each ended run of the unit's hook, in order: the reason of its failure,
// or "" if it did not fail.
func outcomesOf(unit, hook string) (outcomes []string) {
	for _, line := range readHooksLog(filepath.Dir(charmDirOf(unit))) {
		m := hookOutput().FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}

		hookOfLine := m[4]
		message := m[5]
		if hookOfLine != hook {
			continue
		}
		if end := hookOutcome().FindStringSubmatch(message); end != nil && end[1] != "begins" {
			outcomes = append(outcomes, end[2])
		}
	}
	return outcomes
}

// charmDirOf returns the directory in which the unit runs its charm, or "" if this host does not have the unit.
func charmDirOf(unit string) string {
	for _, dir := range unitDirs("*") {
		if unitOf(dir) == unit {
			return filepath.Join(dir, "charm")
		}
	}
	return ""
}

// shellOptions returns the options with which a script's first line calls a shell. The result isShell is
// false if the first line does not call sh, bash or dash, or if the file cannot be read.
func shellOptions(file string) (options []string, isShell bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, false
	}

	firstLine, _, _ := strings.Cut(string(data), "\n")
	command, isScript := strings.CutPrefix(firstLine, "#!")
	words := strings.Fields(command)
	if !isScript || len(words) == 0 {
		return nil, false
	}
	if filepath.Base(words[0]) == "env" {
		words = words[1:]
	}
	if len(words) == 0 || !slices.Contains([]string{"sh", "bash", "dash"}, filepath.Base(words[0])) {
		return nil, false
	}

	return words[1:], true
}
