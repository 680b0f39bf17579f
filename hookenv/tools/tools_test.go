package tools_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv"
	"bijou/hookenv/client/wire"
	"bijou/hookenv/tools"
)

// TestClientKnowsEveryTool compares the thin client's constant with the table of tools, since the
// client cannot read the table.
func TestClientKnowsEveryTool(t *testing.T) {
	var names []string
	for _, tool := range tools.All() {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff(names, strings.Fields(wire.ToolNames)); diff != "" {
		t.Errorf("names in hookenv/client/names.go (-table +client):\n%s", diff)
	}
}

func TestEveryToolHasHelpWithAnExample(t *testing.T) {
	for _, tool := range tools.All() {
		help := tool.Help()
		for _, want := range []string{"Usage: " + tool.Name + " ", "\nOptions:\n", "\nExamples:\n  "} {
			if !strings.Contains(help, want) {
				t.Errorf("%s --help lacks %q:\n%s", tool.Name, want, help)
			}
		}
		summary, _, _ := strings.Cut(regexp.MustCompile(`(?s)^Usage: .*?\n\n`).ReplaceAllString(help, ""), "\n\n")
		if text, whole := strings.CutSuffix(summary, "."); !whole || text == "" || strings.HasSuffix(text, ".") || strings.Contains(text, "\n") {
			t.Errorf("%s: summary %q", tool.Name, summary)
		}
		for _, argument := range []string{"-h", "--help"} {
			got := openDirect(t, plainSetup(t)).Call(t, step(tool.Name, "x", argument))
			if got.Exit != 0 || got.Stdout != help || got.Stderr != "" {
				t.Errorf("%s x %s: got %+v", tool.Name, argument, got)
			}
		}
	}
	if r, done := tools.RunWithoutHook([]string{"nope", "--help"}); done || len(r.Stdout) > 0 {
		t.Error("help for no tool")
	}
	manuals, err := os.ReadDir("help")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range manuals {
		name, isText := strings.CutSuffix(file.Name(), ".txt")
		if !isText || !slices.ContainsFunc(tools.All(), func(tool hookenv.Tool) bool { return tool.Name == name }) {
			t.Errorf("help/%s is of no tool", file.Name())
		}
	}
}

func TestUnsupportedToolsSaySo(t *testing.T) {
	for _, tool := range tools.All() {
		if tools.Supported(tool.Name) {
			continue
		}
		got := openDirect(t, plainSetup(t)).Call(t, step(tool.Name, "a", "--b=c", "-d"))
		want := "ERROR " + tool.Name + " is not supported by this version of bijou: bijou has no "
		part, names := strings.CutPrefix(got.Stderr, want)
		if got.Exit != 1 || !names || len(part) < 2 || strings.Count(part, "\n") != 1 || got.Stdout != "" {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}

// TestEveryToolTakesOutput checks that every tool has -o. With -o, a tool that prints nothing only creates
// the file.
func TestEveryToolTakesOutput(t *testing.T) {
	for _, tool := range tools.All() {
		if help := tool.Help(); strings.Count(help, "  -o, --output FILE\n") != 1 {
			t.Errorf("help of %s: %s", tool.Name, help)
		}
	}
}

// help returns the help text of a tool.
func help(name string) string {
	all := tools.All()
	return all[slices.IndexFunc(all, func(tool hookenv.Tool) bool { return tool.Name == name })].Help()
}

func TestOutside(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		want hookenv.Result
		done bool
	}{
		{[]string{"juju-log", "-l", "warning", "a", "b"}, hookenv.Result{Stderr: []byte("WARNING a b\n")}, true},
		{[]string{"/x/juju-logger", "hi"}, hookenv.Result{Stderr: []byte("INFO hi\n")}, true},
		{[]string{"juju-log", "-l", "loud", "hi"}, hookenv.Result{Stderr: []byte("WARNING unknown log level \"loud\": using INFO\nINFO hi\n")}, true},
		{[]string{"juju-log"}, hookenv.Result{Exit: 2, Stderr: []byte("ERROR no message specified\n")}, true},
		{[]string{"juju-log", "--bogus"}, hookenv.Result{Exit: 2, Stderr: []byte("ERROR option provided but not defined: --bogus\n")}, true},
		{[]string{"juju-log", "--client-id=x", "hi"}, hookenv.Result{}, false},
		{[]string{"relation-get", "user"}, hookenv.Result{}, false},
		{[]string{"relation-get", "--help"}, hookenv.Result{Stdout: []byte(help("relation-get"))}, true},
		{[]string{"nope"}, hookenv.Result{}, false},
	} {
		got, done := tools.RunWithoutHook(tt.argv)
		if diff := cmp.Diff(tt.want, got, equalBytes()); diff != "" || done != tt.done {
			t.Errorf("%q: done %v (-want +got):\n%s", tt.argv, done, diff)
		}
	}
}
