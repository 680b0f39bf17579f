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

var tracedLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\++charm-test-trace:(?:\S*/charm/|\./)?([^:\n]+):(\d+):(.*)$`)
})

// traceHook runs a failed hook of a unit again with a trace. It returns the file and line of the charm where the
// hook ended, and the command there. It returns "" if the hook is not a shell script, or does not fail in the same
// way. With --on-host or --shell it returns "", since the operator may look at the results of the first run.
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
	if relation, _, isRelated := strings.Cut(hook, "-relation-"); isRelated {
		return r.traceRelationHook(ctx, unit, relation, filepath.Join(dir, file), failure, append([]string{bash}, options...))
	}

	program := filepath.Join(r.Folder, "trace.sh")
	if err := os.WriteFile(program, []byte(traceProgram), 0o644); err != nil {
		return "", ""
	}
	args := append([]string{"do", "--unit", unit, "env", "BASH_ENV=" + program, bash}, options...)
	cmd := exec.CommandContext(ctx, "juju", append(args, file)...)
	cmd.Dir = dir
	cmd.Env = r.environ
	cmd.WaitDelay = time.Second
	// The exit code decides below.
	out, _ := cmd.CombinedOutput()
	if failure != fmt.Sprintf("exit code %d", cmd.ProcessState.ExitCode()) {
		return "", ""
	}

	return lastTraced(string(out))
}

// lastTraced returns the last place and command of a trace, or "" if it has none.
func lastTraced(trace string) (place, command string) {
	all := tracedLine().FindAllStringSubmatch(trace, -1)
	if len(all) == 0 {
		return "", ""
	}
	last := all[len(all)-1]
	return last[1] + ":" + last[2], strings.TrimSpace(last[3])
}

// traceRelationHook is traceHook for a relation hook, which finds its relation only if the agent runs it. It
// adds the trace to the unit's file of the hook, and lets the agent retry the hook. shell is the command that
// runs the file. The results are those of traceHook.
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
	// The test's charm directory is discarded, so it does no harm if this fails.
	defer os.WriteFile(file, data, 0o755)

	before := len(outcomesOf(unit, hook))
	cmd := exec.CommandContext(ctx, "juju", "resolved", "--retry", unit, relation)
	cmd.Dir = r.work
	cmd.Env = r.environ
	if err := cmd.Run(); err != nil {
		// The unit no longer has this failure.
		return "", ""
	}

	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		outcomes := outcomesOf(unit, hook)
		text, _ := os.ReadFile(trace)
		// Without a trace, this is the end of a run that had begun before.
		if len(outcomes) == before || len(text) == 0 {
			continue
		}
		if outcomes[len(outcomes)-1] != failure {
			return "", ""
		}
		return lastTraced(string(text))
	}

	return "", ""
}

// addTrace returns a shell script that writes a trace to a file when it runs, with the same numbers of lines.
func addTrace(data []byte, shell []string, trace string) []byte {
	_, rest, _ := strings.Cut(string(data), "\n")
	begin := fmt.Sprintf("exec {charm_test_trace}>'%s'; BASH_XTRACEFD=$charm_test_trace; %s; set -x; ", trace, tracePrompt)
	return []byte("#!" + strings.Join(shell, " ") + "\n" + begin + rest)
}

// outcomesOf returns how each run of the unit's hook has ended, in order: how it failed, or "" if it did not fail.
func outcomesOf(unit, hook string) (outcomes []string) {
	for _, line := range readHooksLog(filepath.Dir(charmDirOf(unit))) {
		m := hookOutput().FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil || m[4] != hook {
			continue
		}
		if end := hookOutcome().FindStringSubmatch(m[5]); end != nil && end[1] != "begins" {
			outcomes = append(outcomes, end[2])
		}
	}
	return outcomes
}

func charmDirOf(unit string) string {
	for _, dir := range unitDirs("*") {
		if unitOf(dir) == unit {
			return filepath.Join(dir, "charm")
		}
	}
	return ""
}

// shellOptions returns the options with which a script's first line calls a shell. isShell is false if the line
// calls a different program.
func shellOptions(file string) (options []string, isShell bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, false
	}

	first, _, _ := strings.Cut(string(data), "\n")
	words := strings.Fields(strings.TrimPrefix(first, "#!"))
	if !strings.HasPrefix(first, "#!") || len(words) == 0 {
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
