package testscripts

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// example is one command of a page of docs, and what the page says it prints.
type example struct {
	heading string
	command string
	want    string // "..." stands for anything in a line, or alone for any lines
}

// examples reads the fenced console blocks of a page: "$ " begins a command,
// "> " goes on with it, everything else is what it prints.
func examples(page string) (all []example) {
	heading, inside := "", false
	for line := range strings.Lines(page) {
		at := len(all) - 1
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console\n"
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

// pattern is what the output has to match.
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

// follow PAGE [HEADING] runs the commands of a page of docs, or of one section,
// and holds what they print against the page. What an agent has yet to do, a
// reader waits for: a command is repeated until it prints what it should.
func follow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: follow PAGE [HEADING]")
	}
	ran := 0
	for _, e := range examples(ts.ReadFile(args[0])) {
		if len(args) == 2 && e.heading != args[1] {
			continue
		}
		ran++
		got := ""
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
			if got = output(ts, e.command); e.pattern().MatchString(got) {
				break
			}
			if time.Now().After(end) {
				ts.Fatalf("%q says that\n$ %sprints (-) what it does not print (+):\n%s", e.heading, e.command, cmp.Diff(e.want, got))
			}
		}
	}
	if ran == 0 {
		ts.Fatalf("there is nothing to run in %q", args)
	}
}

// output is what a command prints, on stdout and stderr together.
func output(ts *testscript.TestScript, command string) string {
	cmd := exec.Command("bash", "-c", command)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "BIJOU_HOME", "NO_COLOR", "LANG", "TMPDIR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run() // the page promises what is printed
	return out.String()
}

func TestExamples(t *testing.T) {
	got := examples("# Top\n```console\n$ a \\\n> b\nx\n...\n> y\n$ c\n```\n$ no\n## Next\n```sh\n$ no\n```\n```console\n$ d\n1 ... 2\n```\n")
	want := []example{{"Top", "a \\\nb\n", "x\n...\n> y\n"}, {"Top", "c\n", ""}, {"Next", "d\n", "1 ... 2\n"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(example{})); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct {
		want, output string
		match        bool
	}{
		{"", "", true},
		{"", "x\n", false},
		{"a\n", "a\n", true},
		{"a\n", "a\nb\n", false},
		{"...\na\n...\n", "a\n", true},
		{"...\na\n...\n", "0\na\nb\nc\n", true},
		{"...\na\n...\n", "0\n", false},
		{"a\n  ...\n  ...\nb\n", "a\nx\nb\n", true},
		{"a ... (b)\n", "a x y (b)\n", true},
		{"a ... b\n", "a x\ny b\n", false},
	} {
		if got := (example{want: tt.want}).pattern().MatchString(tt.output); got != tt.match {
			t.Errorf("%q of %q: got %t", tt.want, tt.output, got)
		}
	}
}
