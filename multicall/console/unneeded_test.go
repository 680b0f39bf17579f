package console

import (
	"bytes"
	"strings"
	"testing"
)

type sendCmd struct {
	To      []string `arg:""`
	Format  string   `short:"f"`
	Quiet   bool     `short:"q"`
	Timeout string   `aliases:"wait"`
}

func (c sendCmd) Run(got *string) error {
	*got = strings.Join(c.To, ",") + " " + c.Format + c.Timeout
	return nil
}

type sendCommands struct {
	Send  sendCmd `cmd:"" aliases:"mail"`
	Other struct {
		Colour bool
	} `cmd:""`
}

func sendCommand() Command {
	var g struct {
		From string `short:"m"`
	}
	return Command{Name: "x", Grammar: &g, Commands: &sendCommands{}, Unneeded: []Unneeded{
		{Commands: "*", Options: "colour B", Why: "it has none"},
		{Commands: "send", Options: "via= i= quiet wait=", Why: "there is one way"},
	}}
}

// TestUnneeded checks that unneeded options are accepted and listed in a message, and that commands keep
// their own options.
func TestUnneeded(t *testing.T) {
	for line, want := range map[string]string{
		"send a --via x b --colour":    "a,b |note: --via has no effect: there is one way|note: --colour has no effect: it has none",
		"mail -B -i key -i other a":    "a |note: -B has no effect: it has none|note: -i has no effect: there is one way",
		"send a --via=x --via=y":       "a |note: --via has no effect: there is one way",
		"send a --wait 5s --quiet":     "a 5s|",
		"other --colour":               "|",
		"-m you send a --colour=false": "a |note: --colour has no effect: it has none",
		"send a --via":                 `|error: --via: missing value, expecting "<arg>"|hint: see: x send --help`,
		"other --via x":                "|error: unknown flag --via|hint: see: x other --help",
		"send a --vio x":               `|error: unknown flag --vio, did you mean "--via"?|hint: see: x send --help`,
	} {
		t.Run(line, func(t *testing.T) {
			var errs bytes.Buffer
			var got string
			parsed, err := Parse(Streams{Out: &errs, Err: &errs}, sendCommand(), strings.Fields(line))
			Report(&errs, err)
			if err == nil && parsed.Command() != "other" {
				if err := parsed.Run(&got); err != nil {
					t.Fatal(err)
				}
			}

			got += "|" + strings.Join(strings.FieldsFunc(errs.String(), func(r rune) bool { return r == '\n' }), "|")
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}

	var help bytes.Buffer
	_, _ = Parse(Streams{Out: &help, Err: &help}, sendCommand(), []string{"send", "--help"})
	if strings.Contains(help.String(), "via") || !strings.Contains(help.String(), "--quiet") {
		t.Errorf("help:\n%s", &help)
	}
}

func TestWords(t *testing.T) {
	for line, want := range map[string]string{
		"send":                                   "",
		"send a -f x b --format y c":             "a b c",
		"send a --format=x b -fx c -qf x d -q e": "a b c d e",
		"send --wait 5s a --via v b -i k c":      "a b c",
		"send -m you a --unknown b - c -- d":     "a b - c",
		"mail a":                                 "a",
		"nosuch a":                               "",
	} {
		t.Run(line, func(t *testing.T) {
			args := strings.Fields(line)
			indexes, err := sendCommand().Words(args)
			var got []string
			for _, i := range indexes {
				got = append(got, args[i])
			}
			if err != nil || strings.Join(got, " ") != want {
				t.Errorf("got %q, want %q: %v", got, want, err)
			}
		})
	}
}
