package console

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

func TestGather(t *testing.T) {
	var g struct {
		Env string `short:"e"`
		Run struct {
			Words  []string `arg:""`
			Wait   bool     `short:"w"`
			Format string   `short:"f" aliases:"fmt"`
		} `cmd:"" aliases:"exec"`
		Do struct {
			Command []string `arg:"" passthrough:"partial"`
			Unit    string
		} `cmd:""`
	}
	parser, err := kong.New(&g)
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":                              "",
		"run a b":                       "run a b",
		"run a --wait b":                "run --wait a b",
		"-e x run a -f yaml b -w":       "-e x run -f yaml -w a b",
		"exec a --fmt yaml b":           "exec --fmt yaml a b",
		"run a --format=yaml b":         "run --format=yaml a b",
		"run a -wf yaml b":              "run -wf yaml a b",
		"run a -fyaml b":                "run -fyaml a b",
		"run a -e x b - c":              "run -e x a b - c",
		"run a --unknown b":             "run --unknown a b",
		"run a -- --wait b --":          "run a -- --wait b --",
		"run a --format":                "run --format a",
		"run run --wait exec":           "run --wait run exec",
		"do --unit u cmd --wait -e":     "do --unit u cmd --wait -e",
		"--env x do cmd a --unit other": "--env x do cmd a --unit other",
	} {
		got := strings.Join(moveOptionsFirst(parser.Model.Node, strings.Fields(args)), " ")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", args, diff)
		}
	}
}
