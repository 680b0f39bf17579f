package script

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"bijou/testscripts/kit/await"
)

// example is one command on a page of docs, with the output that the page shows.
type example struct {
	heading string
	command string
	want    string // "..." stands for anything in a line, or alone for any lines
	bare    bool   // the command must succeed, and its output is not compared
}

// readExamples reads the fenced console blocks of a page: "$ " begins a command, "> " continues it, and
// all other lines are its output. In fenced bash blocks, each line is a command that must succeed.
func readExamples(page string) (all []example) {
	heading, inside, bare := "", false, false
	for line := range strings.Lines(page) {
		at := len(all) - 1
		switch {
		case strings.HasPrefix(line, "```"):
			inside, bare = line == "```console\n", line == "```bash\n"
		case bare:
			all = append(all, example{heading: heading, command: line, bare: true})
		case !inside && strings.HasPrefix(line, "#"):
			heading = strings.Trim(line, "# \n")
		case !inside:
		case strings.HasPrefix(line, "$ "):
			all = append(all, example{heading: heading, command: line[2:]})
		case strings.HasPrefix(line, "> ") && all[at].want == "":
			all[at].command += line[2:]
		default:
			all[at].want += line
		}
	}
	return all
}

// pattern returns the pattern that the output must match.
func (e example) pattern() *regexp.Regexp {
	lines := ""
	for line := range strings.Lines(e.want) {
		if strings.TrimSpace(line) == "..." {
			lines += `(?:.*\n)*`
		} else {
			lines += strings.ReplaceAll(regexp.QuoteMeta(line), regexp.QuoteMeta("..."), ".*")
		}
	}
	return regexp.MustCompile(`\A` + lines + `\z`)
}

// followPage is the command follow PAGE [HEADING]: it runs the commands of a page of docs, or of one section,
// and compares their output with the page. Readers wait until agents have done their work, so a command is
// repeated until it prints the expected output, within the limits of eventually.
func followPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: follow PAGE [HEADING]")
	}
	ran := 0
	for _, e := range readExamples(ts.ReadFile(args[0])) {
		if len(args) == 2 && e.heading != args[1] {
			continue
		}
		ran++
		what := fmt.Sprintf("%q says that\n$ %sprints (-) what it does not print (+):", e.heading, e.command)
		await.Until(ts, await.Poll{Limit: 30 * time.Second, Pause: 100 * time.Millisecond, Looks: 150}, what, func() string {
			got, err := runExample(ts, e.command)
			return await.Unless(e.bare && err == nil || !e.bare && e.pattern().MatchString(got), "%s", cmp.Diff(e.want, got))
		})
	}
	if ran == 0 {
		ts.Fatalf("there is nothing to run in %q", args)
	}
}

// runExample runs a command and returns its stdout and stderr together, and its error. If the script
// sets FOLLOW_IN, its words go before each command.
func runExample(ts *testscript.TestScript, command string) (string, error) {
	args := append(strings.Fields(ts.Getenv("FOLLOW_IN")), "bash", "-c", command)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "BIJOU_HOME", "BIJOU_STATE", "NO_COLOR", "LANG", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
