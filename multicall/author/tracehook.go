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

// traceTimeout bounds how long a hook may take that runs again to be traced. A host under load takes its time.
const traceTimeout = 30 * time.Second

// traceProgram has bash print each command before it runs it, with its file and line.
const traceProgram = "PS4='+charm-test-trace:${BASH_SOURCE}:${LINENO}:'\nset -x\n"

var tracedLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\++charm-test-trace:(?:\S*/charm/|\./)?([^:\n]+):(\d+):(.*)$`)
})

// traceHook runs a failed hook of a unit once more, traced, and returns the file and line of the charm where it
// ended, and the command there. It returns none if the hook is none of a shell, is one of a relation, which would
// not meet the same again, does not fail in the same way, or if somebody looks at what it has left: the host, or the operator's shell.
func (r *scriptRun) traceHook(ctx context.Context, unit, hook, failure string) (place, command string) {
	dir := charmDirOf(unit)
	if r.OnHost || r.Shell || dir == "" || strings.Contains(hook, "-relation-") {
		return "", ""
	}
	file := filepath.Join("hooks", hook)
	options, isShell := shellOptions(filepath.Join(dir, file))
	bash, err := exec.LookPath("bash")
	if !isShell || err != nil {
		return "", ""
	}

	program := filepath.Join(r.Folder, "trace.sh")
	if err := os.WriteFile(program, []byte(traceProgram), 0o644); err != nil {
		return "", ""
	}
	ctx, stop := context.WithTimeout(ctx, traceTimeout)
	defer stop()
	args := append([]string{"do", "--unit", unit, "env", "BASH_ENV=" + program, bash}, options...)
	cmd := exec.CommandContext(ctx, "juju", append(args, file)...)
	cmd.Dir = dir
	cmd.Env = r.environ
	cmd.WaitDelay = time.Second
	out, _ := cmd.CombinedOutput()
	if failure != fmt.Sprintf("exit code %d", cmd.ProcessState.ExitCode()) {
		return "", ""
	}

	all := tracedLine().FindAllStringSubmatch(string(out), -1)
	if len(all) == 0 {
		return "", ""
	}
	last := all[len(all)-1]
	return last[1] + ":" + last[2], strings.TrimSpace(last[3])
}

func charmDirOf(unit string) string {
	for _, dir := range unitDirs("*") {
		if unitOf(dir) == unit {
			return filepath.Join(dir, "charm")
		}
	}
	return ""
}

// shellOptions returns the options with which a script's first line calls a shell; isShell is false if it calls
// another program.
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
