package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// TestParseWords checks options before, among and after the words of a list.
func TestParseWords(t *testing.T) {
	type run struct {
		Words  []string `arg:""`
		Wait   bool     `short:"w"`
		Format string   `short:"f" aliases:"fmt"`
	}
	type grammar struct {
		Env string `short:"e"`
		Run run    `cmd:"" aliases:"exec"`
		Do  struct {
			Command []string `arg:"" passthrough:"partial"`
			Unit    string
		} `cmd:""`
	}
	for args, want := range map[string]string{
		"":                              `expected one of "run", "do"`,
		"run a b":                       "run [a b]",
		"run a --wait b":                "run [a b] wait",
		"-e x run a -f yaml b -w":       "run [a b] wait yaml x",
		"exec a --fmt yaml b":           "run [a b] yaml",
		"run a --format=yaml b":         "run [a b] yaml",
		"run a -wf yaml b":              "run [a b] wait yaml",
		"run a -fyaml b":                "run [a b] yaml",
		"run a -e x b - c":              "run [a b - c] x",
		"run -w a -e x b c -f yaml d e": "run [a b c d e] wait yaml x",
		"run a --unknown b":             "unknown flag --unknown",
		"run a -w --unknown b":          "unknown flag --unknown",
		"run a -w b --unknown":          "unknown flag --unknown",
		"run -- a --wait b --":          "run [a --wait b --]",
		"run -w -- a b -f":              "run [a b -f] wait",
		"run a -- --wait b --":          "unexpected argument --wait",
		"run a -w -- b -f":              "unexpected argument b",
		"run a --format":                "--format: expected string value but got \"EOL\" (<EOL>)",
		"run a b -w c --format":         "--format: expected string value but got \"EOL\" (<EOL>)",
		"run run --wait exec":           "run [run exec] wait",
		"do --unit u cmd --wait -e":     "do u [cmd --wait -e]",
		"--env x do cmd a --unit other": "do [cmd a --unit other] x",
	} {
		t.Run(args, func(t *testing.T) {
			var g grammar
			parser, err := kong.New(&g)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			switch parsed, err := parseWords(parser, strings.Fields(args)); {
			case err != nil:
				got = err.Error()
			case strings.HasPrefix(parsed.Command(), "run"):
				got = fmt.Sprintf("run %v%s %s %s", g.Run.Words, map[bool]string{true: " wait"}[g.Run.Wait], g.Run.Format, g.Env)
			default:
				got = fmt.Sprintf("do %s %v %s", g.Do.Unit, g.Do.Command, g.Env)
			}
			if got = strings.Join(strings.Fields(got), " "); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
