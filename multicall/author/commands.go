package author

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rsc.io/script"

	"bijou/multicall/author/isolation"
)

var (
	//go:embed fake.sh
	fakeProgram string
	//go:embed stub.sh
	stubHook string
)

// settledTimeout is how long the command settled waits for hooks by default.
const settledTimeout = 30 * time.Second

// command is a command that scripts can call. The argument args contains the words after its name, and the
// result is its output. An error ends the script, unless the script wrote "!" before the command.
type command func(s *script.State, args []string) (string, error)

// commands returns the commands that scripts can call in addition to the applets, by name. They wait for hooks,
// check the results of hooks, and play the programs and services that a charm uses.
func (r *scriptRun) commands() map[string]script.Cmd {
	commands := map[string]script.Cmd{}
	add := func(name, usage string, minArgs int, run command) {
		runCommand := func(s *script.State, args ...string) (script.WaitFunc, error) {
			if len(args) < minArgs {
				return nil, script.ErrUsage
			}
			// The command runs to its end here, so the wait only returns the result.
			out, err := run(s, args)
			return func(*script.State) (stdout, stderr string, _ error) { return out, "", err }, nil
		}
		commands[name] = script.Command(script.CmdUsage{Args: usage}, runCommand)
	}

	add("eventually", "DURATION [!] REGEXP PROGRAM [args...]", 3, awaitOutput)
	add("settled", "[DURATION]", 0, func(s *script.State, args []string) (string, error) {
		timeout := settledTimeout.String()
		if len(args) > 0 {
			timeout = args[0]
		}
		return outputOf(s, "juju", "wait", "--timeout", timeout)
	})
	add("journal", "[UNIT...]", 0, printJournal)
	add("fake", "[exit=N] NAME...", 1, makeFakes)
	add("called", "NAME [REGEXP]", 1, findCall)

	add(
		"stub",
		"NAME [ROLE RELATION:INTERFACE]... | set [--app] NAME RELATION KEY=VALUE... | saw [--app] NAME RELATION KEY[=VALUE]...",
		1,
		runStub,
	)

	add("written", "", 0, func(*script.State, []string) (string, error) {
		if r.OnHost {
			return "", errors.New("hooks write directly to this host, so their changes are not recorded")
		}
		files, err := isolation.Written(r.Folder)
		return strings.Join(files, ""), err
	})

	return commands
}

// outputOf runs a program as the script would, and returns its output on both streams. It returns an error if
// the program fails or the script has ended.
func outputOf(s *script.State, program string, args ...string) (string, error) {
	return outputWithin(s.Context(), s, program, args...)
}

// outputWithin is like outputOf, but its limit is ctx instead of the script's context, which may have ended.
func outputWithin(ctx context.Context, s *script.State, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = s.Getwd()
	cmd.Env = s.Environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// awaitOutput is the command eventually. It runs the program repeatedly until its output matches REGEXP or,
// with "!", does not match. It returns the last output, and an error if DURATION or the script has ended without
// success.
//
// Unless the script ends, it runs the program at least five times for each second of DURATION before it gives up,
// even if this takes longer. Otherwise a host that was suspended would use up DURATION without a run.
func awaitOutput(s *script.State, args []string) (out string, err error) {
	const (
		pause      = 50 * time.Millisecond
		timePerRun = 200 * time.Millisecond
	)
	limit, err := time.ParseDuration(args[0])
	if err != nil {
		return "", errors.Join(err, script.ErrUsage)
	}

	mustMatch := args[1] != "!"
	if !mustMatch {
		args = args[1:]
	}
	want, err := regexp.Compile("(?m)" + args[1])
	if err != nil || len(args) < 3 {
		return "", errors.Join(err, script.ErrUsage)
	}
	program := args[2]
	programArgs := args[3:]

	end := time.Now().Add(limit)
	minRuns := int(limit/timePerRun) + 1
	for runs := 0; time.Now().Before(end) || runs < minRuns; runs++ {
		// A program that fails also has output, and may succeed later.
		out, _ = outputOf(s, program, programArgs...)
		if want.MatchString(out) == mustMatch {
			return out, nil
		}
		if s.Context().Err() != nil {
			return out, s.Context().Err()
		}
		time.Sleep(pause)
	}

	if mustMatch {
		return out, fmt.Errorf("the output does not match after %s", limit)
	}
	return out, fmt.Errorf("the output still matches after %s", limit)
}

// hookLine matches a line of the log that says that a hook or action begins or has failed. Its groups are the
// unit, the hook or action, the remote unit or application, the word "failed", and ": " with the reason. The
// last three can be empty.
var hookLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\S+ \S+ (\S+) \S+ \S+ (?:hook "|action \d+ \()([^")]+)["\)] (?:begins(?:, in [^,\n]+)?(?:, about ([^,\n]+))?|(failed)(?: after [^:\n]+)?(: .*))`)
})

// printJournal is the command journal. It prints a line UNIT HOOK [REMOTE] for each hook that has begun, and a
// line UNIT HOOK failed: REASON for each hook that has failed, in the order of the log.
func printJournal(s *script.State, units []string) (string, error) {
	lines, err := readLog(s.Context(), s)
	return formatJournal(lines, units), err
}

// readLog returns the lines of the environment's log and of the units' own logs, sorted by time. It returns a
// line that is in both logs only once. If it cannot read the environment's log, it returns the other lines
// with an error.
func readLog(ctx context.Context, s *script.State) ([]string, error) {
	log, err := outputWithin(ctx, s, "juju", "debug-log")
	lines := strings.SplitAfter(log, "\n")

	var unitLines []string
	for _, dir := range unitDirs("*") {
		unitLines = append(unitLines, readHooksLog(dir)...)
	}
	lines = append(lines, without(unitLines, lines)...)
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(timeOf(a), timeOf(b)) })

	return lines, err
}

// without returns the lines that are not in known, in the same order. A line that occurs n times in known is
// left out only n times.
func without(lines, known []string) (remaining []string) {
	count := map[string]int{}
	for _, line := range known {
		count[line]++
	}

	for _, line := range lines {
		if count[line] > 0 {
			count[line]--
			continue
		}
		remaining = append(remaining, line)
	}

	return remaining
}

// formatJournal returns the journal of the units, or of all units if none are given. printJournal describes its lines.
// Of several lines about the same event at the same time, formatJournal uses only the first, even if they give
// different reasons of a failure.
func formatJournal(lines, units []string) (journal string) {
	seen := map[string]bool{}
	for _, line := range lines {
		m := hookLine().FindStringSubmatch(line)
		if m == nil {
			continue
		}

		unit := m[1]
		hook := m[2]
		remote := m[3]
		failed := m[4]
		reason := m[5]
		if len(units) > 0 && !slices.Contains(units, unit) {
			continue
		}

		key := timeOf(line) + strings.Join([]string{unit, hook, remote, failed}, " ")
		if !seen[key] {
			// Fields removes the spaces for empty groups.
			words := strings.Fields(unit + " " + hook + " " + remote + " " + failed + reason)
			journal += strings.Join(words, " ") + "\n"
		}
		seen[key] = true
	}

	return journal
}

// timeOf returns when a line of debug-log was logged, to the millisecond.
func timeOf(line string) string { return line[:min(len(line), len(time.DateTime+".000"))] }

// readHooksLog returns the lines of a unit's own log in the form of debug-log. It returns none if the unit
// has not run any hook. The agent writes this log at once, and sends it to the environment's log a moment
// later. By that time the unit's hooks may already count as settled.
func readHooksLog(dir string) (lines []string) {
	// A unit that has not run any hook has no log.
	data, _ := os.ReadFile(filepath.Join(dir, "hooks.log"))
	for line := range strings.Lines(string(data)) {
		stamp, rest, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339, stamp)
		if err == nil {
			lines = append(lines,
				fmt.Sprintf("%s %s %s", at.Local().Format(time.DateTime+".000"), unitOf(dir), rest))
		}
	}

	return lines
}

// unitOf returns the unit of a unit's directory, such as wordpress/0 for .../unit-wordpress-0.
func unitOf(dir string) string {
	name := strings.TrimPrefix(filepath.Base(dir), "unit-")
	i := strings.LastIndexByte(name, '-')
	return name[:i] + "/" + name[i+1:]
}

// fakes returns the directory of fake programs, which hooks find before the host's programs of the same name.
func fakes() string { return os.Getenv("FAKES") }

// makeFakes is the command fake. It creates programs that record their calls, and exit with the code of the
// last word exit=N before the program's name, or with 0.
func makeFakes(_ *script.State, args []string) (string, error) {
	exit := "0"
	for _, word := range args {
		if code, isExit := strings.CutPrefix(word, "exit="); isExit {
			exit = code
			continue
		}

		text := strings.Replace(fakeProgram, "exit 0", "exit "+exit, 1)
		if err := writeProgram(filepath.Join(fakes(), word), text); err != nil {
			return "", err
		}
	}

	return "", nil
}

// writeProgram writes an executable file, and creates its directory.
func writeProgram(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o755)
}

// findCall is the command called. It returns an error unless one of the recorded calls of a fake program
// matches REGEXP. Without REGEXP, any call matches. It also returns the recorded calls.
func findCall(_ *script.State, args []string) (string, error) {
	pattern := ""
	if len(args) > 1 {
		pattern = args[1]
	}

	// A program that was never called has no file of calls.
	calls, _ := os.ReadFile(filepath.Join(fakes(), args[0]+".calls"))
	want, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return string(calls), err
	}
	if len(calls) == 0 || !want.Match(calls) {
		return string(calls), fmt.Errorf("%s was not called with matching arguments", args[0])
	}

	return string(calls), nil
}

// runStub is the command stub. It deploys a stub, which is a service that plays the other side of a relation.
// With set or saw, and with a name, a relation and settings, it does not deploy: set makes the stub write the
// settings, and saw returns an error unless the stub has received them.
func runStub(s *script.State, args []string) (out string, err error) {
	verb := args[0]
	verbArgs := args[1:]
	isApp := len(verbArgs) > 0 && verbArgs[0] == "--app"
	if isApp {
		verbArgs = verbArgs[1:]
	}

	isCall := verb == "set" || verb == "saw"
	if isCall && len(verbArgs) > 2 {
		return callStub(s, verb, isApp, verbArgs[0], verbArgs[1], verbArgs[2:])
	}

	// Without a verb, the arguments are a name and any number of pairs.
	isNameAndPairs := len(args)%2 == 1
	if isNameAndPairs && !isApp {
		return deployStub(s, args[0], args[1:])
	}

	return "", script.ErrUsage
}

// callStub runs the verb set or saw on the stub of the given name. With set, each of the stub's units writes the
// settings. If isApp is true, only the stub's leader writes them, as the application's settings. With saw, callStub
// checks that the stub has received the settings from a unit or an application, or only from an application if
// isApp is true. The elements of pairs are KEY=VALUE or, with saw, also KEY.
func callStub(s *script.State, verb string, isApp bool, name, relation string, pairs []string) (string, error) {
	setArgs := append([]string{"--relation", relation}, pairs...)
	switch {
	case verb == "set" && isApp:
		return setSettings(s, leaderDirs(s, name), name, append([]string{"--app"}, setArgs...))
	case verb == "set":
		return setSettings(s, unitDirs(name), name, setArgs)
	case isApp:
		return findReceived("saw-app.", name, relation, pairs)
	}

	return findReceived("saw.", name, relation, pairs)
}

// setSettings runs relation-set with the arguments in each of the units, which their directories identify. It
// returns the output and the errors of all runs. It returns an error if there are no units.
func setSettings(s *script.State, dirs []string, service string, args []string) (out string, err error) {
	if len(dirs) == 0 {
		return "", fmt.Errorf("%s has no unit that can write these settings", service)
	}

	for _, dir := range dirs {
		words := append([]string{"do", "--unit", unitOf(dir), "relation-set"}, args...)
		unitOut, unitErr := outputOf(s, "juju", words...)
		out += unitOut
		err = errors.Join(err, unitErr)
	}
	return out, err
}

// leaderDirs returns a list with the directory of the service's leader, which is the only unit that can write the
// application's settings. The list is empty if no unit leads.
func leaderDirs(s *script.State, service string) []string {
	return slices.DeleteFunc(unitDirs(service), func(dir string) bool {
		// A unit that cannot answer does not lead.
		answer, _ := outputOf(s, "juju", "do", "--unit", unitOf(dir), "is-leader")
		return !strings.HasPrefix(answer, "True")
	})
}

// unitDirs returns the directories of the service's units on this host. If service is "*", it returns those
// of all units.
func unitDirs(service string) []string {
	// Glob fails only for an invalid pattern.
	dirs, _ := filepath.Glob(filepath.Join(os.Getenv("UNITS"), "unit-"+service+"-[0-9]*"))
	if service == "*" {
		return dirs
	}
	// The pattern for db also matches the units of a service db-0.
	return slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), "unit-"+service+"-"))
		return err != nil
	})
}

// deployStub writes a charm that plays the other side of the charm under test, and deploys it as a service called
// name. The argument relations contains pairs of a role (provides, requires or peers) and RELATION:INTERFACE.
func deployStub(s *script.State, name string, relations []string) (string, error) {
	dir := filepath.Join(os.Getenv("TMPDIR"), "stubs", name)
	metadata := "name: stub\nsummary: A stub for one side of a relation\ndescription: Writes the settings that a test gives it, and records the settings that it receives.\nhook-dialect: modern\n"
	for _, role := range []string{"provides", "requires", "peers"} {
		metadata += role + ":\n"
		for pair := range slices.Chunk(relations, 2) {
			if pair[0] != role {
				continue
			}

			relation, iface, _ := strings.Cut(pair[1], ":")
			metadata += "  " + relation + ": " + iface + "\n"
			if err := writeProgram(filepath.Join(dir, "hooks", relation+"-relation-changed"), stubHook); err != nil {
				return "", err
			}
		}
	}

	// Without relations, the directory can still be missing. writeProgram then creates it.
	if err := writeProgram(filepath.Join(dir, "metadata.yaml"), metadata); err != nil {
		return "", err
	}

	return outputOf(s, "juju", "deploy", dir, name)
}

// findReceived returns an error unless a unit of the service has received all of the settings at the same
// time. The argument pairs contains KEY=VALUE, or KEY for any value. The stub's hooks write the settings that
// they see to the files PREFIX+RELATION in the units' directories, as a JSON object in each line.
// findReceived also returns the content of these files.
func findReceived(prefix, service, relation string, pairs []string) (records string, err error) {
	for _, dir := range unitDirs(service) {
		// A unit that has received nothing has no file.
		data, _ := os.ReadFile(filepath.Join(dir, prefix+relation))
		records += string(data)
	}

	// parseErr is returned only if no line has the settings.
	var parseErr error
	for line := range strings.Lines(records) {
		var received map[string]string
		if err := json.Unmarshal([]byte(line), &received); err != nil {
			// A hook is still writing this line. The other lines count.
			parseErr = err
			continue
		}

		isMissing := func(pair string) bool {
			key, wanted, hasValue := strings.Cut(pair, "=")
			value, isReceived := received[key]
			if !isReceived {
				return true
			}
			return hasValue && value != wanted
		}
		if !slices.ContainsFunc(pairs, isMissing) {
			return records, nil
		}
	}

	return records, errors.Join(parseErr, fmt.Errorf("%s did not receive these settings", service))
}
