package console

import (
	"errors"
	"strings"
	"testing"
)

type completeGrammar struct {
	From string `short:"f" help:"Where."`

	Fetch struct {
		Format string   `enum:"yaml,json" default:"yaml" help:"How."`
		Deep   bool     `short:"d" help:"Below, too."`
		Unit   string   `arg:"" help:"The unit."`
		More   []string `arg:"" optional:"" name:"machine" help:"Machines."`
	} `cmd:"" aliases:"get" help:"Fetch."`
	Pass struct {
		Command []string `arg:"" passthrough:"partial" help:"A command."`
	} `cmd:"" help:"Pass on."`
	Secret struct{} `cmd:"" hidden:""`
}

// TestComplete checks that a word's completion depends on its position: the word is completed as a command,
// an option, an option's value, or a name in the environment.
func TestComplete(t *testing.T) {
	for line, want := range map[string]string{
		"":                           "fetch get pass",
		"f":                          "fetch",
		"--f":                        "--from",
		"fetch --":                   "--help --from --format --deep",
		"get --fo":                   "--format",
		"fetch --format ":            "yaml json",
		"fetch --format j":           "json",
		"fetch --format=j":           "--format=json",
		"fetch --format=json ":       "fetch:unit:",
		"fetch -d ":                  "fetch:unit:",
		"fetch -df here ":            "fetch:unit:here",
		"-f here fetch ":             "fetch:unit:here",
		"fetch -f ":                  "fetch:from:",
		"--from=here fetch u ":       "fetch:machine:here",
		"fetch u 1 2 ":               "fetch:machine:",
		"fetch -- --":                "",
		"fetch -- ":                  "fetch:unit:",
		"pass ls --":                 "",
		"nonsense ":                  "",
		"fetch --nonsense x --form":  "--format",
		"secret --h":                 "--help",
		"fetch u --from there 1 --d": "--deep",
	} {
		t.Run(line, func(t *testing.T) {
			c := Command{Name: "x", Grammar: &completeGrammar{}, Names: func(w Wanted) []string {
				return []string{w.Command + ":" + w.Value + ":" + w.Flags["from"]}
			}}
			var out strings.Builder
			if _, err := Parse(Streams{Out: &out}, c, append([]string{CompleteOption}, strings.Split(line, " ")...)); !errors.Is(err, ErrHelped) {
				t.Fatal(err)
			}
			var words []string
			for printed := range strings.Lines(out.String()) {
				word, _, _ := strings.Cut(printed, "\t")
				words = append(words, word)
			}
			if got := strings.Join(words, " "); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	var out strings.Builder
	_, err := Parse(Streams{Out: &out}, Command{Name: "x", Grammar: &completeGrammar{}}, []string{CompleteOption})
	if want := "fetch\tFetch.\nget\tFetch.\npass\tPass on.\n"; !errors.Is(err, ErrHelped) || out.String() != want {
		t.Errorf("without a word: %q, %v", out.String(), err)
	}
}
