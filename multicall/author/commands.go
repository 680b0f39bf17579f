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

// command is a command that scripts can call. args are the words after its name, and the result is its output. An
// error ends the script, unless the script wrote "!" before the command.
type command func(s *script.State, args []string) (string, error)

// commands returns the commands that scripts can call beside the applets. They wait, check results of
// hooks, and play other parts of a charm's world.
func (r *scriptRun) commands() map[string]script.Cmd {
	all := map[string]script.Cmd{}
	// least is the minimum number of arguments.
	add := func(name, usage string, least int, run command) {
		all[name] = script.Command(script.CmdUsage{Args: usage}, func(s *script.State, args ...string) (script.WaitFunc, error) {
			if len(args) < least {
				return nil, script.ErrUsage
			}
			out, err := run(s, args)
			return func(*script.State) (stdout, stderr string, _ error) { return out, "", err }, nil
		})
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

	return all
}

// outputOf runs a program as the script would, and returns its output on both streams.
func outputOf(s *script.State, program string, args ...string) (string, error) {
	return outputWithin(s.Context(), s, program, args...)
}

// outputWithin is like outputOf, with a context that can outlast the script's.
func outputWithin(ctx context.Context, s *script.State, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = s.Getwd()
	cmd.Env = s.Environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// awaitOutput runs the program again and again until its output matches, or no longer does. It returns an error
// after the duration. It also runs the program at least five times for each second of the duration, however late it is.
// Otherwise a host that was suspended would use up the duration without a try.
func awaitOutput(s *script.State, args []string) (out string, err error) {
	const (
		pause = 50 * time.Millisecond
		slow  = 200 * time.Millisecond
	)
	limit, err := time.ParseDuration(args[0])
	if err != nil {
		return "", errors.Join(err, script.ErrUsage)
	}

	wanted := args[1] != "!"
	if !wanted {
		args = args[1:]
	}
	want, err := regexp.Compile("(?m)" + args[1])
	if err != nil || len(args) < 3 {
		return "", errors.Join(err, script.ErrUsage)
	}

	end := time.Now().Add(limit)
	minLooks := int(limit/slow) + 1
	for looks := 0; time.Now().Before(end) || looks < minLooks; looks++ {
		// A program that fails has output too, and may succeed later.
		out, _ = outputOf(s, args[2], args[3:]...)
		if want.MatchString(out) == wanted {
			return out, nil
		}
		if s.Context().Err() != nil {
			return out, s.Context().Err()
		}
		time.Sleep(pause)
	}

	if wanted {
		return out, fmt.Errorf("the output does not match after %s", limit)
	}
	return out, fmt.Errorf("the output still matches after %s", limit)
}

var hookLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\S+ \S+ (\S+) \S+ \S+ (?:hook "|action \d+ \()([^")]+)["\)] (?:begins(?:, in [^,\n]+)?(?:, about ([^,\n]+))?|(failed)(?: after [^:\n]+)?(: .*))`)
})

// printJournal prints the hooks that have begun or failed, in their order, each as UNIT HOOK [REMOTE].
func printJournal(s *script.State, units []string) (string, error) {
	lines, err := readLog(s.Context(), s)
	return formatJournal(lines, units), err
}

// readLog returns the lines of the environment's log and of the units' own logs, by time. It returns a line that is in
// both logs once.
func readLog(ctx context.Context, s *script.State) ([]string, error) {
	log, err := outputWithin(ctx, s, "juju", "debug-log")
	lines := strings.SplitAfter(log, "\n")
	var own []string
	for _, dir := range unitDirs("*") {
		own = append(own, readHooksLog(dir)...)
	}
	lines = append(lines, without(own, lines)...)
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(timeOf(a), timeOf(b)) })

	return lines, err
}

// without returns the lines that are not in known, in the same order. It leaves a line out only as many times
// as the line occurs in known.
func without(lines, known []string) (rest []string) {
	times := map[string]int{}
	for _, line := range known {
		times[line]++
	}

	for _, line := range lines {
		if times[line] > 0 {
			times[line]--
			continue
		}
		rest = append(rest, line)
	}

	return rest
}

// formatJournal returns the journal's lines about the units, or about all units if none are given. It leaves out
// lines that occur twice at the same time.
func formatJournal(lines, units []string) (journal string) {
	seen := map[string]bool{}
	for _, line := range lines {
		m := hookLine().FindStringSubmatch(line)
		if m == nil || len(units) > 0 && !slices.Contains(units, m[1]) {
			continue
		}

		key := timeOf(line) + strings.Join(m[1:5], " ")
		if !seen[key] {
			journal += strings.Join(strings.Fields(m[1]+" "+m[2]+" "+m[3]+" "+m[4]+m[5]), " ") + "\n"
		}
		seen[key] = true
	}

	return journal
}

// timeOf returns when a line of debug-log was logged, to the millisecond.
func timeOf(line string) string { return line[:min(len(line), len(time.DateTime+".000"))] }

// readHooksLog returns a unit's own log in the form of debug-log. The agent writes that log at once, but sends it to
// the environment's log a moment later. By that time the unit's hooks may already count as settled.
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

// fakes returns the directory of the programs that hooks find before the host's programs.
func fakes() string { return os.Getenv("FAKES") }

// makeFakes makes programs that record how they are called.
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

func writeProgram(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(text), 0o755)
}

// findCall returns an error unless a fake program was called with the arguments.
func findCall(_ *script.State, args []string) (string, error) {
	// A program that was never called has no such file.
	calls, _ := os.ReadFile(filepath.Join(fakes(), args[0]+".calls"))
	want, err := regexp.Compile("(?m)" + append(args, "")[1])
	if err != nil {
		return string(calls), err
	}
	if len(calls) == 0 || !want.Match(calls) {
		return string(calls), fmt.Errorf("%s was not called with matching arguments", args[0])
	}

	return string(calls), nil
}

// runStub deploys a stub, which is a service that plays the other side of a relation. With set, the stub's units
// or the stub's application write settings. With saw, it returns an error unless the stub has received settings.
func runStub(s *script.State, args []string) (out string, err error) {
	verb := args[0]
	rest := args[1:]
	isApp := len(rest) > 0 && rest[0] == "--app"
	if isApp {
		rest = rest[1:]
	}

	if (verb == "set" || verb == "saw") && len(rest) > 2 {
		return callStub(s, verb, isApp, rest[0], rest[1], rest[2:])
	}
	// The arguments are a name and pairs.
	if len(args)%2 == 1 && !isApp {
		return deployStub(s, args[0], args[1:])
	}

	return "", script.ErrUsage
}

// callStub makes the stub of that name write the settings (set), or checks that it has received them (saw).
func callStub(s *script.State, verb string, isApp bool, name, relation string, pairs []string) (string, error) {
	setArgs := append([]string{"--relation", relation}, pairs...)
	switch {
	case verb == "set" && isApp:
		return setSettings(s, leaderDirs(s, name), name, append([]string{"--app"}, setArgs...))
	case verb == "set":
		return setSettings(s, unitDirs(name), name, setArgs)
	case isApp:
		return findTold("saw-app.", name, relation, pairs)
	}

	return findTold("saw.", name, relation, pairs)
}

// setSettings runs relation-set in each of the units. It returns an error if there is none.
func setSettings(s *script.State, dirs []string, service string, args []string) (out string, err error) {
	if len(dirs) == 0 {
		return "", fmt.Errorf("%s has no unit that can write these settings", service)
	}

	for _, dir := range dirs {
		said, serr := outputOf(s, "juju", append([]string{"do", "--unit", unitOf(dir), "relation-set"}, args...)...)
		out = out + said
		err = errors.Join(err, serr)
	}
	return out, err
}

// leaderDirs returns the directory of the service's leader, since only the leader can write the application's
// settings. It returns none if no unit leads.
func leaderDirs(s *script.State, service string) []string {
	return slices.DeleteFunc(unitDirs(service), func(dir string) bool {
		// A unit that cannot answer does not lead.
		answer, _ := outputOf(s, "juju", "do", "--unit", unitOf(dir), "is-leader")
		return !strings.HasPrefix(answer, "True")
	})
}

func unitDirs(service string) []string {
	dirs, _ := filepath.Glob(filepath.Join(os.Getenv("UNITS"), "unit-"+service+"-[0-9]*"))
	return dirs
}

// deployStub deploys a charm that plays the other side of the charm under test. relations holds pairs of a
// role and RELATION:INTERFACE.
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

	if err := writeProgram(filepath.Join(dir, "metadata.yaml"), metadata); err != nil {
		return "", err
	}

	return outputOf(s, "juju", "deploy", dir, name)
}

// findTold returns an error unless a unit of the service has been sent all of the settings at the same time.
func findTold(record, service, relation string, pairs []string) (all string, err error) {
	for _, dir := range unitDirs(service) {
		// A unit that was sent nothing has no file.
		data, _ := os.ReadFile(filepath.Join(dir, record+relation))
		all += string(data)
	}

	for line := range strings.Lines(all) {
		var told map[string]string
		if uerr := json.Unmarshal([]byte(line), &told); uerr != nil {
			// A hook is still writing this line, but the lines before it count.
			err = uerr
			continue
		}

		isUntold := func(pair string) bool {
			key, value, isPair := strings.Cut(pair, "=")
			given, is := told[key]
			return !is || isPair && given != value
		}
		if !slices.ContainsFunc(pairs, isUntold) {
			return all, nil
		}
	}

	return all, errors.Join(err, fmt.Errorf("%s did not receive these settings", service))
}
