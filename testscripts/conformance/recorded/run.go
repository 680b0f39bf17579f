package recorded

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv/hookapi"
	"bijou/testscripts/conformance/hookapitest"
)

// Setup is the start of one case.
type Setup struct {
	World     hookapitest.World
	Facts     hookapi.Facts
	Directory string // the caller's directory, with the case's files in it
}

// Caller is one hook that can call commands.
type Caller interface {
	// Call calls one command in the Setup's directory.
	Call(t testing.TB, step Step) Outcome
}

// Outcome is the result of a command.
type Outcome struct {
	Exit           int
	Stdout, Stderr string
}

// Run runs the cases whose tools are all supported, and prints how many it skips. open starts one hook,
// which ends with its test.
func Run(t *testing.T, f File, supported func(tool string) bool, open func(t testing.TB, s Setup) Caller) {
	later := map[string]bool{}
	left := 0
	for i, c := range f.Cases {
		if missing := c.missing(supported); len(missing) > 0 {
			left++
			for _, tool := range missing {
				later[tool] = true
			}
			continue
		}
		t.Run(fmt.Sprintf("%03d %s %s", i, c.Context, strings.Join(c.Run[0].Argv, " ")), func(t *testing.T) {
			c.play(t, open(t, f.setup(t, c)))
		})
	}
	if left > 0 {
		fmt.Printf("%s: %d of %d recorded cases are left for later: their tools (%d) are not supported yet\n", t.Name(), left, len(f.Cases), len(later))
	}
}

func (c Case) missing(supported func(tool string) bool) []string {
	var missing []string
	for _, step := range c.Run {
		if !supported(step.Argv[0]) {
			missing = append(missing, step.Argv[0])
		}
	}
	return slices.Compact(missing)
}

func (f File) setup(t testing.TB, c Case) Setup {
	s := Setup{World: f.World(), Facts: f.Facts(c.Context), Directory: t.TempDir()}
	s.World.Leader = s.World.Leader || f.context(c.Context).Leader
	for name, content := range f.Files {
		if err := os.WriteFile(filepath.Join(s.Directory, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(s.Directory)
	return s
}

func (c Case) play(t *testing.T, s Caller) {
	for _, step := range c.Run {
		got := s.Call(t, step)
		want := Outcome{Exit: step.Exit, Stdout: step.Stdout, Stderr: step.Stderr}
		if begins := step.StderrBegins; begins != "" {
			want.Stderr, got.Stderr = begins, got.Stderr[:min(len(begins), len(got.Stderr))]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", step.Argv, diff)
		}
		for name, content := range step.Writes {
			data, err := os.ReadFile(name)
			if err != nil || string(data) != content {
				t.Errorf("%q wrote %q into %s (%v), want %q", step.Argv, data, name, err, content)
			}
		}
	}
}

// Cases returns the recorded calls of hook tools from testdata/hook-tools.json, or from the file that
// BIJOU_RECORDED names.
func Cases(t *testing.T) File {
	t.Helper()
	path := os.Getenv("BIJOU_RECORDED")
	if path == "" {
		path = filepath.Join(root(t), "testscripts", "conformance", "recorded", "testdata", "hook-tools.json")
	}

	f, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Cases) == 0 {
		t.Fatalf("%s has no cases", path)
	}
	return f
}

// root returns the directory with go.mod. It is the working directory or above it.
func root(t testing.TB) string {
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			t.Fatal("no go.mod above the test")
		}
		folder = parent
	}
}
