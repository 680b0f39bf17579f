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

// settledTimeout is how long a script waits for hooks if it does not say how long.
const settledTimeout = 30 * time.Second

// command is one that scripts may call, with what the script says after its name. It returns what
// it prints; an error ends the script, unless that wrote "!" before it.
type command func(s *script.State, args []string) (string, error)

// commands returns the commands that scripts can call beside the applets. They wait, check results of
// hooks, and play other parts of a charm's world. add takes a command's usage, and its least number of
// arguments.
func (r *scriptRun) commands() map[string]script.Cmd {
	all := map[string]script.Cmd{}
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
		return outputOf(s, "juju", "wait", "--timeout", append(args, settledTimeout.String())[0])
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
			return "", errors.New("hooks write to this host, and what is not known")
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

// outputWithin runs a program as outputOf, also after the script's time is up.
func outputWithin(ctx context.Context, s *script.State, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = s.Getwd(), s.Environ()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// awaitOutput runs the program again and again until its output matches, or no longer does. It returns an error
// after the duration. It runs the program at least five times for each second of the duration, since the machine
// may have stood still meanwhile.
func awaitOutput(s *script.State, args []string) (out string, err error) {
	const pause, slow = 50 * time.Millisecond, 200 * time.Millisecond
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
		out, _ = outputOf(s, args[2], args[3:]...)
		if want.MatchString(out) == wanted {
			return out, nil
		}
		if s.Context().Err() != nil {
			return out, s.Context().Err()
		}
		time.Sleep(pause)
	}

	return out, fmt.Errorf("after %s it does not", limit)
}

var hookLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\S+ \S+ (\S+) \S+ \S+ (?:hook "|action \d+ \()([^")]+)["\)] (?:begins(?:, in [^,\n]+)?(?:, about ([^,\n]+))?|(failed)(?: after [^:\n]+)?(: .*))`)
})

// printJournal prints the hooks that have begun, in their order, and those that failed, each as
// UNIT HOOK [REMOTE].
func printJournal(s *script.State, units []string) (string, error) {
	lines, err := readLog(s.Context(), s)
	return formatJournal(lines, units), err
}

// readLog returns the lines of the environment's log and of the units' own logs, by time. Most lines are
// there twice.
func readLog(ctx context.Context, s *script.State) ([]string, error) {
	log, err := outputWithin(ctx, s, "juju", "debug-log")
	lines := strings.SplitAfter(log, "\n")
	for _, dir := range unitDirs("*") {
		lines = append(lines, readHooksLog(dir)...)
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(timeOf(a), timeOf(b)) })

	return lines, err
}

// formatJournal returns the journal's lines about the units, or about all.
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

// readHooksLog returns a unit's own log as debug-log prints it. The agent writes it at once, and
// sends it to the environment's log a moment later, when its hooks may count as settled.
func readHooksLog(dir string) (lines []string) {
	data, _ := os.ReadFile(filepath.Join(dir, "hooks.log")) // a unit that has run no hook has none
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

// unitOf returns the unit that has the directory: wordpress/0 for .../unit-wordpress-0.
func unitOf(dir string) string {
	name := strings.TrimPrefix(filepath.Base(dir), "unit-")
	i := strings.LastIndexByte(name, '-')
	return name[:i] + "/" + name[i+1:]
}

// fakes returns the directory of the programs that hooks find before those of the host.
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
	calls, _ := os.ReadFile(filepath.Join(fakes(), args[0]+".calls"))
	want, err := regexp.Compile("(?m)" + append(args, "")[1])
	if err != nil {
		return string(calls), err
	}
	if len(calls) == 0 || !want.Match(calls) {
		return string(calls), errors.New("it was not called so")
	}

	return string(calls), nil
}

// runStub deploys a service that needs no charm of its author. With set, its units or the service write
// settings; with saw, it fails unless other units or a service have written settings to it.
func runStub(s *script.State, args []string) (out string, err error) {
	verb := args[0]
	rest := args[1:]
	isApp := len(rest) > 0 && rest[0] == "--app"
	if isApp {
		rest = rest[1:]
	}

	switch isMore := len(rest) > 2; {
	case isMore && verb == "set" && isApp:
		return setSettings(s, leaderDirs(s, rest[0]), rest[0], append([]string{"--app", "--relation"}, rest[1:]...))
	case isMore && verb == "set":
		return setSettings(s, unitDirs(rest[0]), rest[0], append([]string{"--relation"}, rest[1:]...))
	case isMore && verb == "saw" && isApp:
		return findTold("saw-app.", rest[0], rest[1], rest[2:])
	case isMore && verb == "saw":
		return findTold("saw.", rest[0], rest[1], rest[2:])
	case len(args)%2 == 1 && !isApp:
		return deployStub(s, args[0], args[1:])
	}

	return "", script.ErrUsage
}

// setSettings runs relation-set in each of the units. It returns an error if there is none.
func setSettings(s *script.State, dirs []string, service string, args []string) (out string, err error) {
	if len(dirs) == 0 {
		return "", fmt.Errorf("%s has no unit that can say it", service)
	}

	for _, dir := range dirs {
		said, serr := outputOf(s, "juju", append([]string{"do", "--unit", unitOf(dir), "relation-set"}, args...)...)
		out = out + said
		err = errors.Join(err, serr)
	}
	return out, err
}

// leaderDirs returns the directory of the unit that leads, which alone speaks for its service; none if none does.
func leaderDirs(s *script.State, service string) []string {
	return slices.DeleteFunc(unitDirs(service), func(dir string) bool {
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
	metadata := "name: stub\nsummary: Says what it is told to\ndescription: Plays the other side.\nhook-dialect: modern\n"
	for _, role := range []string{"provides", "requires", "peers"} {
		metadata += role + ":\n"
		for pair := range slices.Chunk(relations, 2) {
			relation, kind, _ := strings.Cut(pair[1], ":")
			if pair[0] == role {
				metadata += "  " + relation + ": " + kind + "\n"
				if err := writeProgram(filepath.Join(dir, "hooks", relation+"-relation-changed"), stubHook); err != nil {
					return "", err
				}
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
		data, _ := os.ReadFile(filepath.Join(dir, record+relation))
		all += string(data)
	}

	for line := range strings.Lines(all) {
		var told map[string]string
		if uerr := json.Unmarshal([]byte(line), &told); uerr != nil {
			err = uerr // a line that a hook is writing; those before it count
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

	return all, errors.Join(err, fmt.Errorf("%s was not told so", service))
}
