package tools

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"bijou/hookenv"
	"bijou/hookenv/hookapi"
)

// arguments splits a fuzzer's text into argv.
func arguments(text string) []string { return strings.Split(text, "\x00") }

func FuzzFlags(f *testing.F) {
	for _, seed := range []string{
		"-r\x00db:0\x00user\x00mysql/0", "-rdb:0\x00--app=True\x00-", "--format=json\x00--\x00-x",
		"-r=\x00-", "--", "-", "--app=maybe", "-h", "--=", "-\xff", "-ah",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		argv := arguments(text)
		for _, tool := range All() {
			args, parsed := parseArgs(tool, argv)
			if !parsed {
				continue
			}
			// The remaining arguments must be in argv, in that order.
			rest := argv
			for _, arg := range args {
				i := slices.Index(rest, arg)
				if i < 0 {
					t.Fatalf("%s %q: invented %q", tool.Name, argv, arg)
				}
				rest = rest[i+1:]
			}
			if i := slices.Index(argv, "--"); i < 0 && Supported(tool.Name) && slices.ContainsFunc(args, isOption) {
				t.Fatalf("%s %q: took an option for an argument: %q", tool.Name, argv, args)
			}
		}
	})
}

// parseArgs parses argv, which does not contain the tool's name, and returns the arguments that are not
// options. It does not run the tool.
func parseArgs(tool hookenv.Tool, argv []string) (args []string, parsed bool) {
	tool.Check = func(inv *hookenv.Invocation) error {
		args, parsed = inv.Args, true
		return errors.New("it is parsed only")
	}
	tool.Run(context.Background(), noHook{}, hookenv.Call{Argv: append([]string{tool.Name}, argv...)})
	return args, parsed
}

// noHook is a hook that no tool may call.
type noHook struct{ hookapi.Hook }

func (noHook) Facts() hookapi.Facts { return hookapi.Facts{} }

func isOption(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

func FuzzReference(f *testing.F) {
	for _, seed := range []string{"db", "relation-42", "42", "db:42", "-1", ":0", "db:", "db:0:0", "", "relation-", "relation--1", "99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		ref, ok := parseReference(value)
		switch {
		case !ok && (ref != reference{}):
			t.Fatalf("%q is none, but gave %+v", value, ref)
		case ok && ref.hasNumber && ref.id < -1, ok && !ref.hasNumber && (ref.name != value || ref.id != 0):
			t.Fatalf("%q gave %+v", value, ref)
		case ok && ref.name == "" && !ref.hasNumber:
			t.Fatalf("%q names nothing", value)
		}
	})
}
